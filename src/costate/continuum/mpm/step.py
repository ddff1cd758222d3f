"""One substep of particles on a grid, as a program over fields: MLS-MPM with affine velocities (APIC).

    1  particles deform, and give mass, momentum and the push of their stress to the nodes around them
    2  nodes turn momentum into velocity; gravity and walls act
    3  particles take their velocity, its gradient and their new place from the nodes

Sources: Jiang et al. 2015 (APIC), Hu et al. 2018 (MLS-MPM). Masses are in units of one of the particles, so that grids hold
numbers around 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.laws import Point
from costate.continuum.mpm.tensors import column, matrix
from costate.continuum.mpm.walls import Walls
from costate.continuum.mpm.weights import Spline, collect, spread
from costate.kernel.fields import OWN, TOTAL, Around, Entities, Field, FieldBuilder
from costate.kernel.ir.program import Program, Var

EMPTY = 1e-16
"""Mass, over that of a particle, which is added to nodes: those without any then have no velocity."""
Touch = Callable[[ca.SX, ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX]]
"""Function (velocity [m/s], mass [kg] and position [m] of a node, pose of a link) -> velocity after it touched, impulse on the link
with its moment about the link's origin (6) [N s]."""


@dataclass(frozen=True, eq=False)
class Given:
    """Inputs of a substep."""

    states: list[list[Field]]
    """Positions, velocities, their affine part and numbers of the law, of every body."""
    act: Field
    """Actuation of the muscles."""
    gravity: Var
    origin: Var
    """First node of the window."""
    walls: list[Field]
    numbers: list[tuple[Var, Field | None]]
    """Parameters of every body: those that particles share, and their own."""


@dataclass(frozen=True, eq=False)
class MpmStep:
    """The substep of some bodies on a grid."""

    grid: MpmGrid
    bodies: tuple[SoftBody, ...]
    walls: Walls
    spline: Spline
    h: float
    """Length of a substep [s]."""
    window: tuple[int, ...]
    """Nodes along each axis of the part of the grid that is computed. Where it lies is an input: particles are in it, and nodes
    outside of it would be empty."""

    @cached_property
    def mass(self) -> float:
        """Unit of mass [kg]."""
        body = self.bodies[0]
        return body.values()["density"] * body.volume

    @property
    def n_muscles(self) -> int:
        """Number of muscles."""
        return max(int(np.max(b.muscles)) for b in self.bodies) + 1

    @property
    def nodes(self) -> Entities:
        """Nodes of the window."""
        return Entities("nodes", int(np.prod(self.window)))

    @property
    def muscles(self) -> Entities:
        """Muscles, and one behind them that never pulls."""
        return Entities("muscles", self.n_muscles + 1)

    def particles(self, b: int) -> Entities:
        """Return the particles of a body."""
        return Entities(f"particles of '{self.bodies[b].name}'", self.bodies[b].count)

    def carried(self, b: int) -> list[int]:
        """Return how many numbers a particle carries: position, velocity, affine part of it (dim^2), numbers of the law."""
        dim = self.grid.dim
        return [dim, dim, dim * dim, len(self.bodies[b].rest)]

    # --- stages ---------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """Return the substep: (numbers of every body), actuation; gravity, first node of the window, walls, parameters of every
        body -> (numbers of every body), particles that left the window or moved too far."""
        f = FieldBuilder("mpm substep")
        given = self.given(f)
        return f.program(*self.advance(f, given)[0])

    def given(self, f: FieldBuilder) -> Given:
        """Declare the inputs of a substep."""
        states = [[f.carried(self.particles(b), n) for n in self.carried(b)] for b in range(len(self.bodies))]
        return replace(self.given_shared(f), states=states)

    def given_shared(self, f: FieldBuilder) -> Given:
        """Declare the inputs of a substep that are not carried."""
        act = f.carried(self.muscles)
        gravity, origin = f.inputs(self.grid.dim, self.grid.dim)
        walls = [f.carried(self.nodes, n) for n in self.wall_sizes]
        return Given([], act, gravity, origin, walls, [self._parameters(f, b) for b in range(len(self.bodies))])

    @property
    def wall_sizes(self) -> list[int]:
        """Numbers of a node about walls."""
        return [1, self.grid.dim] if self.walls.obstacles else [1]

    def _parameters(self, f: FieldBuilder, b: int) -> tuple[Var, Field | None]:
        shared, own = self.split(b)
        (p,) = f.inputs(len(shared))
        return p, f.carried(self.particles(b), len(own)) if own else None

    def split(self, b: int) -> tuple[list[str], list[str]]:
        """Return the parameters that all particles of a body share, and those that each has."""
        body = self.bodies[b]
        return [n for n in body.values() if n not in body.varying], list(body.varying)

    def advance(
        self, f: FieldBuilder, given: Given, links: Sequence[tuple[Touch, Var]] = (), node: Field | None = None
    ) -> tuple[list[Var], list[Var]]:
        """Add the stages of a substep; return what is carried on with the number of lost particles, and impulses on links."""
        states, act, numbers = given.states, given.act, given.numbers
        places, lost, grids, kept = [], [], [], []
        for b, (x, v, C, state) in enumerate(states):
            index, gone = f.for_each(self.particles(b), self._locate, [x, v, given.origin], [OWN, TOTAL])
            around = f.around(self.nodes, index, self.spline.offsets(self.window))
            new, sums = self._give(f, b, (x, v, C, state), act, numbers[b], around)
            places.append(around)
            lost.append(gone)
            grids.append(sums)
            kept.append(new)
        velocity, pushes = self._nodes(f, grids, given, links, node)
        found: list[Var] = []
        for b, (x, *_) in enumerate(states):
            taken = f.for_each(self.particles(b), self._take, [x, velocity[places[b]]], [OWN, OWN, OWN])
            found += [*(t.var for t in taken), kept[b].var]
        total = lost[0] if len(lost) == 1 else f.call(lambda *n: sum(n), *lost)[0]
        return [*found, total], pushes

    def _locate(self, x: ca.SX, v: ca.SX, origin: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the lowest node that a particle touches, and 1 if it is outside of the window or moves more than a cell."""
        base = self.spline.base(self.grid.cells(x)) - origin
        last = ca.DM(self.window) - self.spline.nodes
        good = ca.logic_and(ca.mmin(base) >= 0, ca.mmin(last - base) >= 0)
        good = ca.logic_and(good, self.h * ca.mmax(ca.fabs(v)) <= self.grid.dx)
        number = base[0]
        for k in range(1, self.grid.dim):
            number = number * self.window[k] + base[k]
        return number, ca.if_else(good, 0, 1)

    def _give(self, f: FieldBuilder, b: int, own, act: Field, numbers, around: Around) -> tuple[Field, Field]:
        body, of = self.bodies[b], self.particles(b)
        shared, single = self.split(b)
        muscular = self.n_muscles > 0 and int(np.max(body.muscles)) >= 0
        reads = [*own, numbers[0]]
        if single:
            reads.append(numbers[1])
        if muscular:
            which = np.where(np.asarray(body.muscles) < 0, self.n_muscles, body.muscles)
            reads.append(act[f.table(of, self.muscles, which[:, None])])

        def give(x: ca.SX, v: ca.SX, C: ca.SX, state: ca.SX, p: ca.SX, *rest: ca.SX) -> tuple[ca.SX, ca.SX]:
            more = list(rest)
            values = {name: p[k] for k, name in enumerate(shared)}
            if single:
                own = more.pop(0)
                values |= {name: own[k] for k, name in enumerate(single)}
            return self.give(body, x, v, C, state, values, more[0] if muscular else ca.SX(0))

        new, given = f.for_each(of, give, reads, [OWN, around])
        return new, given

    def give(self, body: SoftBody, x, v, C, state, p: dict[str, ca.SX], act: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return the numbers of the law after the substep, and what each node gets: momentum and mass."""
        dim, dx = self.grid.dim, self.grid.dx
        L = matrix(C, dim)
        new, tau = body.law.step(Point(ca.SX.eye(dim) + self.h * L, L, state, p, act))
        mass = p["density"] * (body.volume / self.mass)
        push = -self.h * body.volume / (self.spline.moment * dx * dx * self.mass) * tau
        given = spread(self.spline.around(self.grid.cells(x)), mass * v, dx * (push + mass * L), mass)
        return new, ca.vertcat(*given)

    def _nodes(self, f: FieldBuilder, grids, given: Given, links, number) -> tuple[Field, list[Var]]:
        n, w, dim = len(grids), len(given.walls), self.grid.dim

        def node(*args: ca.SX) -> tuple[ca.SX, ...]:
            total = sum(args[1:n], args[0])
            code, *normal = args[n : n + w]
            mass = total[dim]
            v = total[:dim] / (mass + EMPTY) + self.h * args[n + w]
            pushes = []
            for k, (touch, _) in enumerate(links):
                origin, place = args[n + w + 1 : n + w + 3]
                v, push = touch(v, mass * self.mass, self._position(place, origin), args[n + w + 3 + k])
                pushes.append(push)
            return self.walls.apply(v, code, normal[0] if normal else None), *pushes

        reads = [*grids, *given.walls, given.gravity]
        if links:
            reads += [given.origin, number, *(pose for _, pose in links)]
        velocity, *pushes = f.for_each(self.nodes, node, reads, [OWN, *[TOTAL] * len(links)])
        return velocity, pushes

    def _position(self, number: ca.SX, origin: ca.SX) -> ca.SX:
        """Return the position [m] of a node of the window from its number."""
        rest, places = number, []
        for n in reversed(self.window[1:]):
            whole = ca.floor(rest / n)
            places.append(rest - n * whole)
            rest = whole
        return (ca.vertcat(rest, *reversed(places)) + origin) * self.grid.dx + ca.DM(self.grid.lower)

    def _take(self, x: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return position, velocity and its affine part from the velocities of the nodes around a particle."""
        around = self.spline.around(self.grid.cells(x))
        v, *affine = collect(around, [u[k, :].T for k in range(u.shape[0])])
        C = ca.horzcat(*affine) / (self.spline.moment * self.grid.dx)
        return x + self.h * v, v, column(C)
