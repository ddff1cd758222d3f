"""Slices: a part of a vector, without moving it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca

from costate.kernel.ir.program import DYNAMIC, Array, Builder, Op, Var
from costate.kernel.ops.bulk import LONG
from costate.kernel.ops.straight import Straight, concat, zeros

if TYPE_CHECKING:
    from costate.kernel.codegen.emit import Emitter, Place


@dataclass(frozen=True, eq=False)
class Slice(Op):
    """Elements start .. start + size of a vector of n elements."""

    n: int
    start: int
    size: int
    is_view = True

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

    def view(self, place: Place) -> Place:
        from costate.kernel.codegen.emit import shifted

        return shifted(place, self.start)

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        raise TypeError("a slice is a view")
