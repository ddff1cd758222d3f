"""A step of a liquid with a free surface, as a kernel.

    1  particles give their momentum to the faces of cells around them (APIC, quadratic weights)
    2  gravity; walls stop what goes through them
    3  pressure in the cells that hold particles, 0 in the air, takes the divergence out
    4  particles take velocity and its gradient from the faces, and move

Sources: Jiang et al. 2015 (APIC); Harlow and Welch 1965, Zhu and Bridson 2005 (particles on a staggered grid).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from costate.continuum.fluid.grid import Grid
from costate.continuum.fluid.multigrid import Level, levels_of
from costate.continuum.fluid.pressure import Projection
from costate.continuum.liquid.surface import all_numbers, apart, spread_out, wet_numbers
from costate.continuum.mpm.weights import SPLINES, collect, spread
from costate.kernel import Kernel
from costate.kernel.fields import OWN, TOTAL, Entities, FieldBuilder

EMPTY = 1e-16
"""Mass, over that of a particle, which is added to faces: those without any then have no velocity."""
BORDER = 2
"""Solid cells around the room."""
NEAR = 1e-3
"""Distance to the sides of the room, in cells, that particles keep."""
SPREAD = 0.1
"""Share of what is too much in a cell that flows out in a step."""
CROWD = 1.1
"""Particles around a centre, over those at the beginning, from which on there are too many."""
SPLINE = SPLINES["quadratic"]


@dataclass(frozen=True, eq=False)
class LiquidStep:
    """A step of so many particles."""

    grid: Grid
    """Cells, with a border of solid ones."""
    count: int
    dt: float
    tolerance: float
    limit: int

    @cached_property
    def levels(self) -> list[Level]:
        """Levels of the V-cycle; their numbers are those of a room full of liquid."""
        return levels_of(self.grid)

    def constants(self) -> dict[str, np.ndarray]:
        """Return the numbers of cells that do not change."""
        grid = self.grid
        found = {
            "free": grid.free.reshape(grid.d, -1).T.astype(float),
            "room": grid.neighbours.reshape(-1, 1).astype(float),
        }
        return found | {f"apart{k}": apart(level) for k, level in enumerate(self.levels[:-1])}

    def kernel(self) -> Kernel:
        """Return a step: x, v, C, gravity, constants -> x, v, C, pressure, told: particles that were lost, converged, residual,
        iterations."""
        f, grid, d = FieldBuilder("liquid"), self.grid, self.grid.d
        particles, cells = f.entities("particles", self.count), f.entities("cells", grid.count)
        x, v, C = (f.field(name, particles, n) for name, n in (("x", d), ("v", d), ("C", d * d)))
        gravity = f.input("gravity", d)
        sets = [cells, *(f.entities(f"cells {k}", level.count) for k, level in enumerate(self.levels[1:], 1))]
        k = {name: f.field(name, self._set(name, sets), a.shape[1]) for name, a in self.constants().items()}
        *index, own, lost = f.for_each(particles, self._locate, [x, v], [OWN] * (d + 2) + [TOTAL])
        *around, centre = (f.around(cells, i, SPLINE.offsets(grid.shape)) for i in index)
        held = f.around(cells, own, [0])
        *sums, dense, inside = f.for_each(particles, self._give, [x, v, C], [*around, centre, held])
        (source,) = f.for_each(cells, self._crowded, [dense])
        u = f.for_each(cells, self._faces, [*sums, k["free"], gravity], [OWN] * d)
        finest = wet_numbers(f, grid, cells, inside, k["room"])
        numbers = all_numbers(f, self.levels, finest, [k[f"apart{i}"] for i in range(len(self.levels) - 1)], sets)
        way = Projection(grid, cells, self.levels, self.tolerance, self.limit, closed=False)
        u, p, status, _ = way.solve(f, u, k["free"], numbers, source)
        u = spread_out(f, grid, cells, u, finest)
        new = f.for_each(particles, self._take, [x, *(c[a] for c, a in zip(u, around, strict=True))], [OWN] * 3)
        for name, field in zip("xvC", new, strict=True):
            f.field_output(name, field, flat=False)
        f.field_output("pressure", p)
        f.output("told", f.trace(lambda n, s: ca.vertcat(n, s), lost, status))
        return f.kernel()

    def _set(self, name: str, sets: list[Entities]) -> Entities:
        return sets[int(name.removeprefix("apart"))] if name.startswith("apart") else sets[0]

    # --- particles --------------------------------------------------------------------------------------------------

    def _cells(self, x: ca.SX) -> ca.SX:
        return x / self.grid.cell + BORDER

    def _face(self, x: ca.SX, a: int) -> ca.SX:
        """Return a position in cells from the first face across an axis, or from the first centre (a = d)."""
        return self._cells(x) - ca.DM([0.0 if k == a else 0.5 for k in range(self.grid.d)])

    def _number(self, base: ca.SX) -> ca.SX:
        number = base[0]
        for k in range(1, self.grid.d):
            number = number * self.grid.shape[k] + base[k]
        return number

    def _locate(self, x: ca.SX, v: ca.SX) -> tuple[ca.SX, ...]:
        """Return the lowest faces across each axis and the lowest centre that a particle touches, its cell, and 1 if it is outside
        of the room or moves more than a cell."""
        X, shape = self._cells(x), ca.DM(self.grid.shape)
        good = ca.logic_and(ca.mmin(X) >= BORDER, ca.mmin(shape - X) >= BORDER)
        good = ca.logic_and(good, self.dt * ca.mmax(ca.fabs(v)) <= self.grid.cell)
        safe = ca.if_else(good, x, 0.5 * self.grid.cell)
        faces = [self._number(SPLINE.base(self._face(safe, a))) for a in range(self.grid.d + 1)]
        return *faces, self._number(ca.floor(self._cells(safe))), ca.if_else(good, 0, 1)

    def _give(self, x: ca.SX, v: ca.SX, C: ca.SX) -> tuple[ca.SX, ...]:
        d = self.grid.d
        rows = ca.reshape(C, d, d).T
        found = []
        for a in range(d):
            around = SPLINE.around(self._face(x, a))
            found.append(ca.vertcat(*spread(around, v[a], self.grid.cell * rows[a, :], ca.SX(1))))
        crowd = spread(SPLINE.around(self._face(x, d)), ca.SX(0, 1), ca.SX(0, d), ca.SX(1))
        return *found, ca.vertcat(*crowd), ca.SX(1)

    def _take(self, x: ca.SX, *u: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        d, cell = self.grid.d, self.grid.cell
        v, rows = [], []
        for a in range(d):
            value, *affine = collect(SPLINE.around(self._face(x, a)), [u[a][k] for k in range(u[a].numel())])
            v.append(value)
            rows.append(ca.vertcat(*affine) / (SPLINE.moment * cell))
        speed = ca.vertcat(*v)
        high = cell * (ca.DM(self.grid.shape) - 2 * BORDER - NEAR)
        return ca.fmin(ca.fmax(x + self.dt * speed, NEAR * cell), high), speed, ca.vertcat(*rows)

    # --- cells ------------------------------------------------------------------------------------------------------

    def _crowded(self, dense: ca.SX) -> ca.SX:
        """Return what should flow out of a cell [m/s] so that too many particles in it spread out: splashes pack them."""
        excess = ca.fmin(ca.fmax(dense / 2**self.grid.d - CROWD, 0), 1)
        return SPREAD * self.grid.cell / self.dt * excess

    def _faces(self, *args: ca.SX) -> tuple[ca.SX, ...]:
        d = self.grid.d
        free, gravity = args[d:]
        return tuple(free[a] * (args[a][0] / (args[a][1] + EMPTY) + self.dt * gravity[a]) for a in range(d))
