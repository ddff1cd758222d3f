"""Advection: what a fluid carries along with it.

Semi-Lagrangian: a point receives what was where it came from, interpolated between the corners around that place. MacCormack: the
same there and back gives its error, half of which is taken away, within the values around the place (Selle et al., 2008). By
fluxes: what leaves a cell through a face enters its neighbour, so that the sum is kept (van Leer's limiter).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import casadi as ca

from costate.continuum.fluid.grid import Grid
from costate.kernel.fields import OWN, Entities, Field, FieldBuilder


@dataclass(frozen=True, eq=False)
class Points:
    """Places that the numbers of a lattice come from."""

    at: Field
    """Position (d), counted in cells of the lattice, before it is put back into the grid."""
    index: Field
    """Corner of the padded grid below it."""


@dataclass(frozen=True, eq=False)
class Advection:
    """Stages that carry fields of a grid along with its velocity."""

    grid: Grid
    f: FieldBuilder
    cells: Entities
    padded: Entities

    # --- where things come from -----------------------------------------------------------------------------------

    def points(self, u: Sequence[Field], place: Field, dt: float) -> list[Points]:
        """Return where the faces across each axis, and last the centres, were a time dt ago; a negative one goes forward."""
        d, grid = self.grid.d, self.grid
        reads = [u[a][self.f.table(self.cells, self.cells, grid.table(self._around_face(a)))] for a in range(d)]
        share = dt / grid.cell

        def body(place: ca.SX, *u: ca.SX) -> tuple[ca.SX, ...]:
            found = [place - share * ca.vertcat(*self._velocity(u, c)) for c in range(d + 1)]
            return (*found, *(self._index(x) for x in found))

        made = self.f.for_each(self.cells, body, [place, *reads], [OWN] * (2 * d + 2))
        return [Points(made[c], made[d + 1 + c]) for c in range(d + 1)]

    def _around_face(self, a: int) -> list[tuple[int, ...]]:
        """Return where component a is read: the two faces of the cell, and of each neighbour below it along another axis."""
        grid = self.grid
        below = [grid.unit(c, -1) for c in range(grid.d) if c != a]
        return [o for b in (grid.unit(a, 0), *below) for o in (b, _sum(b, grid.unit(a)))]

    def _velocity(self, u: Sequence[ca.SX], c: int) -> list[ca.SX]:
        """Return the velocity at the face across axis c, or at the centre (c = d)."""
        d = self.grid.d
        if c == d:
            return [(u[a][0] + u[a][1]) / 2 for a in range(d)]
        below = {a: 2 + 2 * [k for k in range(d) if k != a].index(c) for a in range(d) if a != c}
        return [u[a][0] if a == c else (u[a][0] + u[a][1] + u[a][below[a]] + u[a][below[a] + 1]) / 4 for a in range(d)]

    def _index(self, x: ca.SX) -> ca.SX:
        low = ca.floor(x)
        inside = [low[a] - n * ca.floor(low[a] / n) for a, n in enumerate(self.grid.shape)]
        return ca.dot(ca.DM(self.grid.strides), ca.vertcat(*inside))

    # --- semi-Lagrangian ------------------------------------------------------------------------------------------

    def carried(self, value: Field, points: Points, valid: Field | None = None, limits: bool = False) -> list[Field]:
        """Return a field as it arrives at points, and with limits also the least and the greatest value around them.

        valid: field that is 1 where numbers mean something and 0 within solids, which are left out; a point with nothing valid
        around it keeps its number.
        """
        grid = self.grid
        around = [sum(s * o for s, o in zip(grid.strides, corner, strict=True)) for corner in grid.corners]
        there = self.f.around(self.padded, points.index, around)
        reads = [points.at, value, self._pad(value)[there]] + ([] if valid is None else [self._pad(valid)[there]])

        def body(at: ca.SX, own: ca.SX, values: ca.SX, *valid: ca.SX) -> tuple[ca.SX, ...]:
            share = at - ca.floor(at)
            weights = ca.vertcat(*(_weight(share, corner) for corner in grid.corners))
            ok = valid[0] if valid else None
            results = [_mean(own, values, weights, ok)]
            return tuple(results + (_extremes(own, values, ok) if limits else []))

        return self.f.for_each(self.cells, body, reads, [OWN] * (3 if limits else 1))

    def corrected(self, value: Field, there: Points, back: Points, valid: Field | None = None) -> Field:
        """Return a field as it arrives at points, by MacCormack's method. back: where the fluid goes to."""
        first, least, most = self.carried(value, there, valid, limits=True)
        (again,) = self.carried(first, back, valid)
        reads = [value, first, again, least, most]
        return self.f.for_each(
            self.cells, lambda v, a, b, low, high: ca.fmin(ca.fmax(a + (v - b) / 2, low), high), reads
        )[0]

    def _pad(self, value: Field) -> Field:
        table = self.f.table(self.padded, self.cells, self.grid.padded)
        return self.f.for_each(self.padded, lambda x: x, [value[table]])[0]

    # --- by fluxes ------------------------------------------------------------------------------------------------

    def conserved(self, value: Field, u: Sequence[Field], dt: float) -> Field:
        """Return a field after a time dt of flow through the faces of its cells: its sum stays as it is."""
        grid, f, share = self.grid, self.f, dt / self.grid.cell
        reads: list = list(u)
        for a in range(grid.d):
            row = [grid.unit(a, k) for k in (-2, -1, 0, 1)]
            reads.append(value[f.table(self.cells, self.cells, grid.table(row))])
        n = grid.d
        fluxes = f.for_each(
            self.cells, lambda *x: tuple(_flux(share * x[a], x[n + a]) for a in range(n)), reads, [OWN] * n
        )
        beyond = [q[f.table(self.cells, self.cells, grid.table([grid.unit(a)]))] for a, q in enumerate(fluxes)]

        def body(v: ca.SX, *q: ca.SX) -> ca.SX:
            return v + sum(q[a] - q[n + a] for a in range(n))

        return f.for_each(self.cells, body, [value, *fluxes, *beyond])[0]


def _sum(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i + j for i, j in zip(a, b, strict=True))


def _weight(share: ca.SX, corner: tuple[int, ...]) -> ca.SX:
    weight = ca.SX(1)
    for a, upper in enumerate(corner):
        weight = weight * (share[a] if upper else 1 - share[a])
    return weight


def _mean(own: ca.SX, values: ca.SX, weights: ca.SX, valid: ca.SX | None) -> ca.SX:
    if valid is None:
        return ca.dot(weights, values)
    kept = weights * valid
    total = ca.sum1(kept)
    some = total > 1e-6
    return ca.if_else(some, ca.dot(kept, values) / ca.if_else(some, total, 1), own)


def _extremes(own: ca.SX, values: ca.SX, valid: ca.SX | None) -> list[ca.SX]:
    """Return the least and the greatest of the values; the entity's own one stands for those that mean nothing."""
    each = [values[k] if valid is None else ca.if_else(valid[k] > 0, values[k], own) for k in range(values.numel())]
    return [reduce(ca.fmin, each), reduce(ca.fmax, each)]


def _flux(c: ca.SX, v: ca.SX) -> ca.SX:
    """Return what passes the face between v[1] and v[2] in a step. c: share of a cell that the flow crosses."""
    step = v[2] - v[1]
    up = ca.if_else(c >= 0, v[1], v[2])
    before = ca.if_else(c >= 0, v[1] - v[0], v[3] - v[2])
    both = before * step
    slope = ca.if_else(both > 0, 2 * both / ca.if_else(both > 0, before + step, 1), 0)
    return c * up + ca.fabs(c) * (1 - ca.fabs(c)) / 2 * slope
