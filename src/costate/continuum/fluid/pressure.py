"""Pressure: what makes a velocity field free of divergence.

    A p = -div u          A p of a fluid cell: the sum of p - p' over its neighbours that are not solid; p' = 0 in open cells
    u <- u - grad p       at faces that are no walls

p stands for dt / (density * cell) times the pressure. The derivative of the solve is a solve with the same, symmetric, operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from costate.continuum.fluid.grid import Grid
from costate.continuum.fluid.multigrid import Level, VCycle
from costate.kernel.fields import OWN, TOTAL, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Var


@dataclass(frozen=True, eq=False)
class Projection:
    """Stages that take the divergence out of a velocity field."""

    grid: Grid
    cells: Entities
    levels: list[Level]
    tolerance: float
    limit: int
    closed: bool
    """True if there is no open cell, so that the pressure is known up to a constant."""

    def solve(
        self,
        f: FieldBuilder,
        u: Sequence[Field],
        free: Field,
        levels: Sequence[Field],
        source: Field | None = None,
    ) -> tuple[list[Field], Field, Var, Var]:
        """Return the velocity without divergence, the pressure, the status of the solve, and the sum of what flows into the fluid
        and the sum of squares of the divergence (2). free: 1 for faces that are no walls (d), else 0. levels: numbers of the levels
        of the V-cycle. source: what should flow out of each cell; None: nothing."""
        grid, d = self.grid, self.grid.d
        (neighbours,) = f.for_each(self.cells, lambda a: a[0], [levels[0]])
        above = [u[a][f.table(self.cells, self.cells, grid.table([grid.unit(a)]))] for a in range(d)]

        def divergence(n: ca.SX, *u: ca.SX) -> tuple[ca.SX, ca.SX]:
            b = ca.if_else(n > 0, sum(u[a] - u[d + a] for a in range(d)), 0)
            return b, ca.vertcat(b, b**2)

        b, sums = f.for_each(self.cells, divergence, [neighbours, *u, *above], [OWN, TOTAL])
        if source is not None:
            (b,) = f.for_each(self.cells, lambda b, s, n: b + (n > 0) * s, [b, source, neighbours])
        inside = int(grid.fluid.sum())
        if self.closed:  # rounding must not ask for what no pressure gives
            (b,) = f.for_each(self.cells, lambda b, n, s: b - (n > 0) * s[0] / inside, [b, neighbours, sums])
        cycle = VCycle(self.levels, self.closed)
        found = f.cg(self._apply, b, [neighbours], None, self.tolerance, self.limit, (cycle, levels))
        (p,) = f.for_each(self.cells, lambda p, n: (n > 0) * p, [found.value, neighbours])
        below = p[f.table(self.cells, self.cells, grid.table([grid.unit(a, -1) for a in range(d)]))]

        def correct(p: ca.SX, below: ca.SX, free: ca.SX, *u: ca.SX) -> tuple[ca.SX, ...]:
            return tuple(u[a] - free[a] * (p - below[a]) for a in range(d))

        new = f.for_each(self.cells, correct, [p, below, free, *u], [OWN] * d)
        if self.closed:  # the mean is unknown; without it, the solve's derivative is asked for nothing that it lacks
            (total,) = f.for_each(self.cells, lambda p: p, [p], [TOTAL])
            (p,) = f.for_each(self.cells, lambda p, n, s: p - (n > 0) * s / inside, [p, neighbours, total])
        return new, p, found.status, sums

    def _apply(self, g: FieldBuilder, p: Field, neighbours: Field) -> Field:
        """Return A p. It is symmetric for fields that are 0 outside of the fluid, which are all that occur."""
        grid = self.grid
        sides = [grid.unit(a, s) for a in range(grid.d) for s in (-1, 1)]
        around = g.table(self.cells, self.cells, grid.table(sides))

        def body(p: ca.SX, others: ca.SX, n: ca.SX) -> ca.SX:
            return ca.if_else(n > 0, n * p - ca.sum1(others), p)

        return g.for_each(self.cells, body, [p, p[around], neighbours])[0]
