"""Look-up in a constant grid: height fields, distance grids, material tables.

`Corners` fetches, per lane, the grid values around a point and the cell they belong to. Both are piecewise constant, so their
derivative is zero; the interpolation between them is straight-line code (`build.py`), with derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.program import Array, Builder, Op, Var, digest

if TYPE_CHECKING:
    from costate.kernel.codegen.emit import Emitter, Place


@dataclass(frozen=True, eq=False)
class Corners(Op):
    """inputs: cell coordinates (d), x = 0 at the first grid point and 1 at the second, per axis. outputs: values
    (reach^d * channels), last axis fastest, and the cell (d): index of the point below x, clamped to the grid."""

    grid: np.ndarray
    """Shape (n_1, ..., n_d, channels), float64."""
    before: int
    """Points taken below the cell."""
    reach: int
    """Points taken per axis: 2 for linear, 4 for cubic."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.grid.shape[:-1]

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (len(self.shape),)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        d = len(self.shape)
        return (self.reach**d * self.grid.shape[-1], d)

    @cached_property
    def name(self) -> str:
        """The grid's symbol: says nothing of the data's place, everything of its content."""
        data = np.ascontiguousarray(self.grid, np.float64)
        return f"grid_{digest(data.shape, data.tobytes())[:16]}"

    def grids(self) -> dict[str, np.ndarray]:
        return {self.name: self._data}

    @cached_property
    def _data(self) -> np.ndarray:
        return np.ascontiguousarray(self.grid, np.float64)

    def describe(self) -> tuple[Any, ...]:
        return (self.name, self.grid.shape, self.before, self.reach)

    def evaluate(self, *inputs: Array) -> list[Array]:
        (x,) = inputs
        highest = np.array(self.shape)[:, None] - 2
        cell = np.clip(np.floor(np.nan_to_num(x)), 0, highest)
        values = []
        for step in product(range(self.reach), repeat=len(self.shape)):
            at = cell.astype(int) + np.array(step)[:, None] - self.before
            at = np.clip(at, 0, highest + 1)
            values.append(self.grid[tuple(at)].T)
        nan = np.where(np.isnan(x).any(0), np.nan, 0.0)
        return [np.concatenate(values) + nan, cell + nan]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        return b.stage(self, *ins), [None, None]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        return [None]

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        e.unit.grids[self.name] = self._data
        n = e.n
        x, values, cells = e.pointer(ins[0]), e.pointer(outs[0]), e.pointer(outs[1])
        zero = n.splat(0.0)
        below = []
        poison = zero
        for axis, count in enumerate(self.shape):
            v = e.load(n.vec, e.element(x, str(axis)))
            poison = (
                e.new(f"fadd {n.vec} {poison}, {e.new(f'fsub {n.vec} {v}, {v}')}")
                if axis
                else e.new(f"fsub {n.vec} {v}, {v}")
            )
            ok = e.new(f"fcmp ord {n.vec} {v}, {v}")
            low = e.new(f"select {n.mask} {ok}, {n.vec} {v}, {n.vec} {zero}")
            floor = _call(e, "floor", low)
            top = n.splat(float(count - 2))
            floor = e.new(
                f"select {n.mask} {e.new(f'fcmp ogt {n.vec} {floor}, {zero}')}, {n.vec} {floor}, {n.vec} {zero}"
            )
            floor = e.new(
                f"select {n.mask} {e.new(f'fcmp olt {n.vec} {floor}, {top}')}, {n.vec} {floor}, {n.vec} {top}"
            )
            e.line(f"store {n.vec} {floor}, ptr {e.element(cells, str(axis))}, align {n.stride}")
            below.append(e.new(f"fptosi {n.vec} {floor} to <{n.width} x i64>"))
        self._fetch(e, below, values)

    def _fetch(self, e: Emitter, below: list[str], values: str) -> None:
        """Scalar loads, lane by lane."""
        n = e.n
        strides = np.cumprod([1, *self.grid.shape[:0:-1]])[::-1]
        wide = f"<{n.width} x i64>"
        k = 0
        for step in product(range(self.reach), repeat=len(self.shape)):
            index = ""
            for axis, count in enumerate(self.shape):
                at = e.new(f"add {wide} {below[axis]}, splat (i64 {step[axis] - self.before})")
                at = _clamp(e, wide, at, count - 1)
                at = e.new(f"mul {wide} {at}, splat (i64 {int(strides[axis])})")
                index = e.new(f"add {wide} {index}, {at}") if index else at
            for channel in range(self.grid.shape[-1]):
                vector = "poison"
                for lane in range(n.width):
                    at = e.new(f"extractelement {wide} {index}, i64 {lane}")
                    p = e.new(f"getelementptr double, ptr @{self.name}, i64 {e.new(f'add i64 {at}, {channel}')}")
                    value = e.load("double", p)
                    if n.dtype == "f32":
                        value = e.new(f"fptrunc double {value} to float")
                    vector = e.new(f"insertelement {n.vec} {vector}, {n.scalar} {value}, i64 {lane}")
                e.line(f"store {n.vec} {vector}, ptr {e.element(values, str(k))}, align {n.stride}")
                k += 1


def _clamp(e: Emitter, wide: str, value: str, highest: int) -> str:
    mask = f"<{e.n.width} x i1>"
    low = e.new(f"icmp sgt {wide} {value}, zeroinitializer")
    value = e.new(f"select {mask} {low}, {wide} {value}, {wide} zeroinitializer")
    high = e.new(f"icmp slt {wide} {value}, splat (i64 {highest})")
    return e.new(f"select {mask} {high}, {wide} {value}, {wide} splat (i64 {highest})")


def _call(e: Emitter, name: str, x: str) -> str:
    return e.new(f"call {e.n.vec} @llvm.{name}.{e.n.suffix}({e.n.vec} {x})")
