"""Look-up in a constant grid: height fields, distance grids, material tables.

`Corners` fetches, per lane, the grid values around a point and the cell they belong to. Both are piecewise constant, so their
derivative is zero; the interpolation between them is straight-line code (`build.py`), with derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.program import Array, Builder, Op, Var, digest


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
        """Number of points per axis."""
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
        return {self.name: self.data}

    @cached_property
    def data(self) -> np.ndarray:
        """The grid, as the code reads it."""
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
