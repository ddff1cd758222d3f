"""A V-cycle that preconditions the pressure solve, so that it takes about as many iterations on fine grids as on coarse ones.

Each level has cells twice as large. The operator of a coarse level sums that of the cells within, by half, since differences are
taken over twice the distance. One damped Jacobi sweep before and one after the correction of the coarser level make the cycle
symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from costate.continuum.fluid.grid import Grid
from costate.kernel.fields import OWN, TOTAL, Entities, Field, FieldBuilder, Table
from costate.kernel.ir.program import Var

COARSEST = 4
"""Largest number of cells along an axis of the coarsest level."""
SWEEPS = 8
"""Number of Jacobi sweeps on it."""


@dataclass(frozen=True, eq=False)
class Level:
    """Cells of one size."""

    shape: tuple[int, ...]
    diagonal: np.ndarray
    """Diagonal of the operator (*shape); 0 for cells without fluid."""
    links: np.ndarray
    """Weights (d, *shape) with which cells and their neighbours below are joined."""

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape))

    @cached_property
    def numbers(self) -> np.ndarray:
        """Diagonal, and weights of the neighbours below and above along each axis (count, 1 + 2 d)."""
        rows = [self.diagonal]
        for a, w in enumerate(self.links):
            rows += [w, np.roll(w, -1, a)]
        return np.stack(rows).reshape(1 + 2 * self.d, -1).T

    @cached_property
    def parents(self) -> np.ndarray:
        """Cell of the coarser level that each cell lies in (count, 1)."""
        places = np.unravel_index(np.arange(self.count), self.shape)
        return np.ravel_multi_index(tuple(p // 2 for p in places), self.coarse_shape)[:, None]

    @property
    def coarse_shape(self) -> tuple[int, ...]:
        """Shape of the coarser level."""
        return tuple(-(-n // 2) for n in self.shape)

    def coarser(self) -> Level:
        """Return the next level."""
        shape, parent = self.coarse_shape, self.parents[:, 0]
        diagonal, links = np.zeros(shape), np.zeros((self.d, *shape))
        np.add.at(diagonal.reshape(-1), parent, self.diagonal.ravel())
        for a, w in enumerate(self.links):
            below = np.roll(parent.reshape(self.shape), 1, a).ravel()
            apart = below != parent
            np.add.at(links[a].reshape(-1), parent[apart], w.ravel()[apart])
            np.add.at(diagonal.reshape(-1), parent[~apart], -2 * w.ravel()[~apart])
        return Level(shape, diagonal / 2, links / 2)


def levels_of(grid: Grid) -> list[Level]:
    """Return the levels of a grid, from the finest to the coarsest."""
    links = np.stack([grid.fluid & np.roll(grid.fluid, 1, a) for a in range(grid.d)])
    found = [Level(grid.shape, grid.neighbours.astype(float), links.astype(float))]
    while max(found[-1].shape) > COARSEST:
        found.append(found[-1].coarser())
    return found


@dataclass(frozen=True, eq=False)
class VCycle:
    """The V-cycle as an operator of a residual."""

    levels: list[Level]
    closed: bool
    """True if the fluid has no open cells, so that its pressure is known up to a constant."""

    def __call__(self, g: FieldBuilder, r: Field, *numbers: Field | Var) -> Field:
        """Return about A^-1 r. numbers: those of every level. In a closed fluid nothing is known of the mean, which rounding must
        not fill."""
        fields = [n for n in numbers if isinstance(n, Field)]
        r = self._without_mean(g, r, fields[0])
        return self._without_mean(g, self._cycle(g, 0, r, fields), fields[0])

    @property
    def damping(self) -> float:
        """Factor of Jacobi sweeps that smooths best."""
        d = self.levels[0].d
        return 2 * d / (2 * d + 1)

    def _cycle(self, g: FieldBuilder, k: int, r: Field, numbers: list[Field]) -> Field:
        level, own = self.levels[k], numbers[k]
        cells = r.of
        if k + 1 == len(self.levels):
            return self._coarsest(g, r, own)
        (x,) = g.for_each(cells, lambda r, a: self.damping * _over(r, a[0]), [r, own])
        coarse = numbers[k + 1].of
        parents = g.table(cells, coarse, level.parents)
        (rest,) = g.for_each(cells, _residual, [r, x, x[_around(g, cells, level)], own], [parents])
        below = self._cycle(g, k + 1, rest, numbers)
        (x,) = g.for_each(cells, lambda x, c, a: x + (a[0] > 0) * c, [x, below[parents], own])
        return self._sweep(g, level, r, x, own)

    def _coarsest(self, g: FieldBuilder, r: Field, own: Field) -> Field:
        """Return the result of some sweeps."""
        r = self._without_mean(g, r, own)
        (x,) = g.for_each(r.of, lambda r, a: self.damping * _over(r, a[0]), [r, own])
        for _ in range(SWEEPS):
            x = self._sweep(g, self.levels[-1], r, x, own)
        return self._without_mean(g, x, own)

    def _without_mean(self, g: FieldBuilder, x: Field, own: Field) -> Field:
        if not self.closed:
            return x
        (sums,) = g.for_each(x.of, lambda x, a: ca.vertcat((a[0] > 0) * x, a[0] > 0), [x, own], [TOTAL])
        return g.for_each(x.of, lambda x, a, s: (a[0] > 0) * (x - s[0] / ca.fmax(s[1], 1)), [x, own, sums])[0]

    def _sweep(self, g: FieldBuilder, level: Level, r: Field, x: Field, own: Field) -> Field:
        def body(r: ca.SX, x: ca.SX, others: ca.SX, a: ca.SX) -> ca.SX:
            return x + self.damping * _over(_residual(r, x, others, a), a[0])

        return g.for_each(r.of, body, [r, x, x[_around(g, r.of, level)], own], [OWN])[0]


def _around(g: FieldBuilder, cells: Entities, level: Level) -> Table:
    """Return the neighbours of the cells, as `numbers` has them."""
    places = np.stack(np.unravel_index(np.arange(level.count), level.shape))
    steps = [s * e for e in np.eye(level.d, dtype=int) for s in (-1, 1)]
    rows = [np.ravel_multi_index(tuple(places + s[:, None]), level.shape, mode="wrap") for s in steps]
    return g.table(cells, cells, np.stack(rows, 1))


def _residual(r: ca.SX, x: ca.SX, others: ca.SX, a: ca.SX) -> ca.SX:
    return r - a[0] * x + ca.dot(a[1:], others)


def _over(x: ca.SX, d: ca.SX) -> ca.SX:
    return ca.if_else(d > 0, x / ca.if_else(d > 0, d, 1), 0)
