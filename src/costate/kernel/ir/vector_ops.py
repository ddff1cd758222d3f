"""Zeros, sums and joins of long vectors: loops, where straight-line code would be as long as the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from costate.kernel.ir.program import DYNAMIC, Array, Builder, Op, Var
from costate.kernel.ir.straight import Straight

ZEROS = "zeros"
LONG = 1024
"""Elements from which on a vector is long: shorter ones are straight-line code, which fuses with what is around it."""


@dataclass(frozen=True, eq=False)
class Zeros(Op):
    """A vector of zeros."""

    size: int
    in_sizes = ()

    def writes_rows(self, k: int, row_size: int) -> bool:
        return True

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
        """Return where each part begins."""
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
        (whole,), (seed,) = self.out_sizes, seeds
        assert seed is not None
        if whole >= DYNAMIC // 2:
            return list(b.stage(Parts(self.sizes), seed))
        parts = [Slice(whole, start, n) for start, n in zip(self.starts(), self.sizes, strict=True)]
        return [b.stage(p, seed)[0] if w else None for p, w in zip(parts, wrt, strict=True)]

    def reads_rows(self, k: int, row_size: int) -> bool:
        return self.sizes[k] % row_size == 0

    def writes_rows(self, k: int, row_size: int) -> bool:
        return all(n % row_size == 0 for n in self.sizes)


@dataclass(frozen=True, eq=False)
class Parts(Op):
    """A vector cut into parts, one after the other: the reverse of a join."""

    sizes: tuple[int, ...]

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (sum(self.sizes),)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.sizes

    def starts(self) -> list[int]:
        """Return where each part begins."""
        return Join(self.sizes).starts()

    def describe(self) -> tuple[Any, ...]:
        return ()

    def evaluate(self, *inputs: Array) -> list[Array]:
        return [inputs[0][start : start + n] for start, n in zip(self.starts(), self.sizes, strict=True)]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        assert tans[0] is not None
        return b.stage(self, *ins), list(b.stage(self, tans[0]))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        bars = [zeros(b, n) if s is None else s for s, n in zip(seeds, self.sizes, strict=True)]
        return [b.stage(Join(self.sizes), *bars)[0]]

    def reads_rows(self, k: int, row_size: int) -> bool:
        return all(n % row_size == 0 for n in self.sizes)


@dataclass(frozen=True, eq=False)
class Slice(Op):
    """Elements start .. start + size of a vector of n elements."""

    n: int
    start: int
    size: int

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.n,)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    def describe(self) -> tuple[Any, ...]:
        return (self.start,)

    def evaluate(self, *inputs: Array) -> list[Array]:
        return [inputs[0][self.start : self.start + self.size]]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        tangent = None if tans[0] is None else b.stage(self, tans[0])[0]
        return b.stage(self, *ins), [tangent]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        if self.n >= DYNAMIC // 2:
            raise ValueError(
                "a part of a sequence of dynamic length cannot be differentiated again: give the kernel a fixed length"
            )
        (seed,) = seeds
        assert seed is not None
        if self.n >= LONG:
            ends = [zeros(b, n) for n in (self.start, self.n - self.start - self.size)]
            return [concat(b, ends[0], seed, ends[1])]
        x = ca.SX.sym("x", self.size)
        before, after = ca.SX(self.start, 1), ca.SX(self.n - self.start - self.size, 1)
        return [b.stage(Straight.of("unslice", [x], [ca.vertcat(before, x, after)]), seed)[0]]

    def reads_rows(self, k: int, row_size: int) -> bool:
        return self.start % row_size == 0 and self.size % row_size == 0


def zeros(b: Builder, size: int) -> Var:
    """Add a vector of zeros."""
    if size >= LONG:
        return b.stage(Zeros(size))[0]
    return b.stage(Straight.of(ZEROS, [], [ca.SX.zeros(size)]))[0]


def is_zero(op: Op) -> bool:
    """Return whether a stage only makes zeros: those of `zeros`."""
    return isinstance(op, Zeros) or (isinstance(op, Straight) and op.fn.name() == ZEROS)


def add(b: Builder, u: Var, v: Var) -> Var:
    """Add the sum of two vectors."""
    if u.size >= LONG:
        return b.stage(Add(u.size), u, v)[0]
    x, y = ca.SX.sym("x", u.size), ca.SX.sym("y", v.size)
    return b.stage(Straight.of("add", [x, y], [x + y]), u, v)[0]


def concat(b: Builder, *vs: Var) -> Var:
    """Add the join of vectors."""
    if sum(v.size for v in vs) >= LONG:
        return b.stage(Join(tuple(v.size for v in vs)), *vs)[0]
    x = [ca.SX.sym(f"x{k}", v.size) for k, v in enumerate(vs)]
    return b.stage(Straight.of("concat", x, [ca.vertcat(*x)]), *vs)[0]
