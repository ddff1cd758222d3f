"""Zeros, sums and joins of long vectors: loops, where straight-line code would be as long as the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.kernel.ir.program import Array, Builder, Op, Var

if TYPE_CHECKING:
    from costate.kernel.codegen.emit import Emitter, Place

LONG = 1024
"""Elements from which on a vector is long: shorter ones are straight-line code, which fuses with what is around it."""


@dataclass(frozen=True, eq=False)
class Zeros(Op):
    """A vector of zeros."""

    size: int
    in_sizes = ()

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    def describe(self) -> tuple[Any, ...]:
        return ()

    def evaluate(self, *inputs: Array) -> list[Array]:
        return [np.zeros((self.size, 1))]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        return b.stage(self), [None]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        return []

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        e.helper("vzero", f"ptr {e.pointer(outs[0])}", f"i64 {self.size}")


@dataclass(frozen=True, eq=False)
class Add(Op):
    """The sum of two vectors."""

    size: int

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size, self.size)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    def describe(self) -> tuple[Any, ...]:
        return ()

    def evaluate(self, *inputs: Array) -> list[Array]:
        return [inputs[0] + inputs[1]]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        moving = [t for t in tans if t is not None]
        return b.stage(self, *ins), [moving[0] if len(moving) == 1 else b.stage(self, *moving)[0]]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        return [seeds[0] if w else None for w in wrt]

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        target = e.pointer(outs[0])
        e.copy(target, e.pointer(ins[0]), self.size)
        e.helper("vadd", f"ptr {target}", f"ptr {e.pointer(ins[1])}", f"i64 {self.size}")


@dataclass(frozen=True, eq=False)
class Join(Op):
    """Vectors one after the other."""

    sizes: tuple[int, ...]

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.sizes

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (sum(self.sizes),)

    def starts(self) -> list[int]:
        return [sum(self.sizes[:k]) for k in range(len(self.sizes))]

    def describe(self) -> tuple[Any, ...]:
        return ()

    def evaluate(self, *inputs: Array) -> list[Array]:
        batch = max(x.shape[1] for x in inputs)
        return [np.concatenate([np.broadcast_to(x, (x.shape[0], batch)) for x in inputs])]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        dots = [b.stage(Zeros(v.size))[0] if t is None else t for t, v in zip(tans, ins, strict=True)]
        return b.stage(self, *ins), [b.stage(self, *dots)[0]]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        from costate.kernel.ops.view import Slice

        (whole,), (seed,) = self.out_sizes, seeds
        assert seed is not None
        parts = [Slice(whole, start, n) for start, n in zip(self.starts(), self.sizes, strict=True)]
        return [b.stage(p, seed)[0] if w else None for p, w in zip(parts, wrt, strict=True)]

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        from costate.kernel.codegen.emit import shifted

        for source, start, n in zip(ins, self.starts(), self.sizes, strict=True):
            target = shifted(outs[0], start)
            if source != target:  # what made it may have written it here
                e.copy(e.pointer(target), e.pointer(source), n)
