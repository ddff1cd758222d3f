"""The program of a step of a fluid.

advection     what every face and centre was, where the fluid came from
forces        buoyancy, patterns of forces times controls, viscosity; smoke that enters
resistance    porous cells slow the fluid down to their own velocity, and feel what it loses
walls         faces of solids have a given velocity
pressure      takes the divergence out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from costate.continuum.fluid.advect import Advection
from costate.continuum.fluid.grid import Grid
from costate.continuum.fluid.multigrid import Level, levels_of
from costate.continuum.fluid.pressure import Projection
from costate.kernel.fields import OWN, TOTAL, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Program, Var

SCHEMES = ("semi_lagrangian", "maccormack")
TOLD = 5
"""Numbers that a step tells: converged, residual and iterations of the solve; sum and sum of squares of what flowed into the cells
before it."""


@dataclass(frozen=True, eq=False)
class FluidStep:
    """A step: the velocities and the smoke before it -> those after it."""

    grid: Grid
    dt: float
    advection: str
    conserve: bool
    slip: bool
    patterns: int
    """Number of patterns of forces."""
    porous: bool
    """True if there is a resistance."""
    tolerance: float
    limit: int

    def inputs(self) -> list[tuple[str, int, int]]:
        """Return the names of fields that do not change, the number of cells that have them, and how many numbers each."""
        d = self.grid.d
        found = [*self.wall_inputs(), ("place", d), ("source", 1), ("valid", 1 + d), ("rub", 2 * d * (d - 1))]
        found += [("patterns", self.patterns * d)] * bool(self.patterns) + [("resistance", 1)] * self.porous
        return [x if len(x) == 3 else (x[0], self.grid.count, x[1]) for x in found]

    def wall_inputs(self) -> list[tuple[str, int, int]]:
        """Return those that a projection needs."""
        d, n = self.grid.d, self.grid.count
        found = [(f"level{k}", level.count, 1 + 2 * d) for k, level in enumerate(self.levels)]
        return [("free", n, d), ("given", n, d), *found]

    @cached_property
    def levels(self) -> list[Level]:
        """Levels of the V-cycle of the pressure."""
        return levels_of(self.grid)

    def constants(self) -> dict[str, np.ndarray]:
        """Return the numbers (count, n) of those that the grid gives."""
        grid = self.grid
        valid = np.concatenate([~grid.solid[None], ~grid.inside])
        parts = {"free": grid.free, "valid": valid, "rub": self.rub}
        found = {name: np.asarray(x, float).reshape(len(x), -1).T for name, x in parts.items()}
        found |= {f"level{k}": level.numbers for k, level in enumerate(self.levels)}
        return found | {"place": grid.places.astype(float)}

    @cached_property
    def rub(self) -> np.ndarray:
        """Weights (2 d (d - 1), *shape) of the differences of a component to its neighbours across the flow: 1, or at a wall half a
        cell away 2, or 0 where it lets the fluid slip."""
        grid = self.grid
        found = []
        for c in range(grid.d):
            for e in range(grid.d):
                if e != c:
                    found += [np.where(np.roll(grid.inside[c], s, e), 0.0 if self.slip else 2.0, 1.0) for s in (1, -1)]
        return np.stack(found)

    def program(self) -> Program:
        """Return the step: (velocities, smoke), controls, (what does not change, parameters) -> (velocities, smoke), (pressure,
        force on porous cells (d), what it tells)."""
        f = FieldBuilder("fluid step")
        grid, d = self.grid, self.grid.d
        cells, padded = f.entities("cells", grid.count), f.entities("padded cells", len(grid.padded))
        u = [f.carried(cells) for _ in range(d)]
        s = f.carried(cells)
        (control,) = f.inputs(max(self.patterns, 1))
        k = {name: f.carried(f.entities("cells", count), n) for name, count, n in self.inputs()}
        (p,) = f.inputs(1 + d)
        moved, smoke = self._advect(f, cells, padded, u, s, k)
        (smoke,) = f.for_each(cells, lambda s, q, ok: ok[0] * (s + self.dt * q), [smoke, k["source"], k["valid"]])
        pushed = self._push(f, cells, u, moved, smoke, control, k, p)
        force: Var | None = None
        if self.porous:
            pushed, force = self._resist(f, cells, pushed, k)
        new, pressure, told = self.project(f, cells, pushed, k)
        if force is None:
            force = f.trace(lambda p: ca.SX.zeros(d), p)
        return f.program(*(x.var for x in new), smoke.var, pressure.var, force, told)

    def project(
        self, f: FieldBuilder, cells: Entities, u: Sequence[Field], k: dict[str, Field]
    ) -> tuple[list[Field], Field, Var]:
        """Return the velocities without divergence, and as given at walls; the pressure; what is told of the solve (TOLD)."""
        d = self.grid.d
        walled = f.for_each(
            cells,
            lambda free, given, *u: tuple(free[a] * u[a] + (1 - free[a]) * given[a] for a in range(d)),
            [k["free"], k["given"], *u],
            [OWN] * d,
        )
        way = Projection(self.grid, cells, self.levels, self.tolerance, self.limit, not self.grid.open.any())
        levels = [k[f"level{i}"] for i in range(len(self.levels))]
        new, pressure, status, sums = way.solve(f, walled, k["free"], levels)
        return new, pressure, f.trace(lambda a, b: ca.vertcat(a, b), status, sums)

    def _advect(
        self, f: FieldBuilder, cells: Entities, padded: Entities, u: Sequence[Field], s: Field, k: dict[str, Field]
    ) -> tuple[list[Field], Field]:
        way, d = Advection(self.grid, f, cells, padded), self.grid.d
        masks: list[Field | None] = [None] * (d + 1)
        if self.grid.solid.any():
            parts = f.for_each(cells, lambda v: tuple(v[i] for i in range(d + 1)), [k["valid"]], [OWN] * (d + 1))
            masks = [*(parts[1:] if self.slip else [None] * d), parts[0]]
        there = way.points(u, k["place"], self.dt)
        fields = [*u] if self.conserve else [*u, s]
        if self.advection == "maccormack":
            back = way.points(u, k["place"], -self.dt)
            made = [way.corrected(x, there[i], back[i], masks[i]) for i, x in enumerate(fields)]
        else:
            made = [way.carried(x, there[i], masks[i])[0] for i, x in enumerate(fields)]
        return made[:d], way.conserved(s, u, self.dt) if self.conserve else made[d]

    def _push(
        self, f, cells: Entities, old, moved, smoke: Field, control: Var, k: dict[str, Field], p: Var
    ) -> list[Field]:
        """Return the velocities after forces and viscosity. old: those before advection, whose differences rub."""
        grid, d, dt = self.grid, self.grid.d, self.dt
        below = f.table(cells, cells, grid.table([grid.unit(a, -1) for a in range(d)]))
        sides = f.table(cells, cells, grid.table([grid.unit(e, s) for e in range(d) for s in (-1, 1)]))
        reads = [smoke, smoke[below], *old, *(x[sides] for x in old), *moved, k["rub"], p, control]
        reads += [k["patterns"]] if self.patterns else []

        def body(s: ca.SX, s_below: ca.SX, *rest: ca.SX) -> tuple[ca.SX, ...]:
            own, around, moved = rest[:d], rest[d : 2 * d], rest[2 * d : 3 * d]
            rub, p, control, *patterns = rest[3 * d :]
            found = []
            for c in range(d):
                force = p[1 + c] * (s + s_below[c]) / 2
                if patterns:
                    force = force + sum(control[j] * patterns[0][j * d + c] for j in range(self.patterns))
                across = [e for e in range(d) if e != c]
                bent = around[c][2 * c] + around[c][2 * c + 1] - 2 * own[c]
                for i, e in enumerate(across):
                    for side in range(2):
                        bent = bent + rub[2 * ((d - 1) * c + i) + side] * (around[c][2 * e + side] - own[c])
                found.append(moved[c] + dt * (force + p[0] / grid.cell**2 * bent))
            return tuple(found)

        return f.for_each(cells, body, reads, [OWN] * d)

    def _resist(self, f, cells: Entities, u: Sequence[Field], k: dict[str, Field]) -> tuple[list[Field], Var]:
        """Return the velocities that porous cells leave, and the force that they feel (d), by the density of the fluid."""
        grid, d, dt = self.grid, self.grid.d, self.dt
        below = f.table(cells, cells, grid.table([grid.unit(a, -1) for a in range(d)]))
        mass = grid.cell**d

        def body(r: ca.SX, r_below: ca.SX, free: ca.SX, given: ca.SX, *u: ca.SX) -> tuple[ca.SX, ...]:
            each = [dt * (r + r_below[a]) / 2 for a in range(d)]
            new = [(u[a] + each[a] * given[a]) / (1 + each[a]) for a in range(d)]
            lost = [free[a] * mass * (u[a] - new[a]) / dt for a in range(d)]
            return (*new, ca.vertcat(*lost))

        r = k["resistance"]
        reads = [r, r[below], k["free"], k["given"], *u]
        *new, force = f.for_each(cells, body, reads, [OWN] * d + [TOTAL])
        return new, force
