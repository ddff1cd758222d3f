"""The pairwise substep of worlds that hold nothing but free bodies and static geometry.

All bodies move by one function, and a body is a short record of mass, inertia and twist: code does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT, POSE, pose
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.pair_kinds import Kind, Read
from costate.sim.contact.pgs.pairwise.bodies import CONSTANTS, INERTIA, NV, RECORD, Moving, OneBody
from costate.sim.contact.pgs.pairwise.points import BodyVisit, prepare
from costate.sim.contact.pgs.pairwise.step import PairwiseStep, rows_of, same_for_all
from costate.sim.setup import Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

REACH = 2
"""Reach in units of the way of the fastest shape: two bodies may come towards each other, each as fast as the fastest is."""


class BodyStep(PairwiseStep):
    """The stages of a substep of free bodies."""

    def __init__(self, options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]):
        super().__init__(options, setup, b)
        self.moving = Moving(setup)
        self.carriers, self.count = self.moving.count, self.pairs.count
        self.visit = BodyVisit(self.pairs.together, options)
        self.one = OneBody(setup)
        self.x = args[0]
        self._constants(args)
        self._free()

    def _constants(self, args: Sequence[Var]) -> None:
        """Add what may be a parameter, once for all bodies, shapes and pairs."""
        s = self.symbols
        frictions, restitution = self.frictions(), self.bounce()
        numbers = [
            self.moving.constants(s), *self.pairs.shape_constants(), frictions, restitution, ca.densify(s.params["gravity", ""])
        ]  # fmt: skip
        found = self.b.call(ca.Function("constants", s.inputs, [ca.densify(x) for x in numbers]), *args)
        self.constants, self.local, self.sizes, self.boxes, self.friction, self.restitution, self.gravity = found

    def _of_bodies(self) -> list[Read]:
        """Return state, constants and gravity of every body."""
        n = self.carriers
        rows = np.arange(n)[:, None] * CONSTANTS + np.arange(CONSTANTS)
        return [(self.x, self.moving.coordinates()), (self.constants, rows), (self.gravity, same_for_all(n, 3))]

    def _free(self) -> None:
        b = self.b
        self.velocity, poses, records, speeds = b.map(self.one.free(), self._of_bodies(), [None] * 4)
        world = ca.Function("world", [], [ca.vertcat(1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0), SX.zeros(RECORD)])
        pose_of_world, record_of_world = b.call(world)
        self.records = b.concat(records, record_of_world)
        links = self.pairs.links()
        on = b.concat(poses, pose_of_world), self._of_links(links, POSE)
        (self.poses,) = b.map(_on_link(), [on, (self.local, rows_of(len(links), POSE))], [None])
        v = SX.sym("v", self.carriers)
        fastest = ca.mmax(v) + self.correction_speed
        (self.reach,) = b.call(ca.Function("reach", [v], [REACH * self.setup.dt * fastest]), speeds)

    def _of_links(self, links: Sequence[str], width: int, start: int = 0, size: int | None = None) -> np.ndarray:
        """Return the table of numbers start .. start + size of the bodies of some links, with `width` numbers per body."""
        numbers = np.array([self.moving.number(link) for link in links])
        return numbers[:, None] * width + start + np.arange(width - start if size is None else size)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        a, b = (np.array([self.moving.number(x) for x in links])[self.pairs.owner] for links in self.pairs.sides())
        return a, b

    def more(self) -> list[Read]:
        owner = self.pairs.owner
        return [(self.records, self._of_links(x, RECORD, 3, INERTIA)[owner]) for x in self.pairs.sides()]

    def preparation(self, kind: Kind) -> tuple[Program, list[Read]]:
        members, n = list(kind.members), len(kind.members)
        reads = [(self.records, self._of_links(links, RECORD)[members]) for links in self.pairs.sides()]
        reads += [(self.restitution, same_for_all(n, 1)), (self.reach, same_for_all(n, 1))]
        b = ProgramBuilder("points")
        sizes = (*kind.program.in_sizes, RECORD, RECORD, 1, 1)
        args = [b.input(f"i{k}", n) for k, n in enumerate(sizes)]
        (found,) = b.call(kind.program, *args[:4])
        points, x, y = SX.sym("points", found.size), SX.sym("a", RECORD), SX.sym("b", RECORD)
        restitution, reach = SX.sym("e"), SX.sym("reach")
        bounce = restitution if self.bounces else SX(0)
        ready = [
            prepare(points[POINT * k : POINT * (k + 1)], x, y, bounce, self.options, self.setup.dt)
            for k in range(kind.points)
        ]
        outputs = prepared_columns(ready, self.pairs.together, reach)
        fn = ca.Function("prepare", [points, x, y, restitution, reach], outputs)
        for k, value in enumerate(b.call(fn, found, *args[4:])):
            b.output(f"o{k}", value)
        return b.program(), reads

    def finish(self, change: Var, mean: Var) -> Var:
        twists = rows_of(self.carriers, NV)
        inputs = [*self._of_bodies(), (self.velocity, twists), (change, twists), (mean, twists)]
        return self.b.map(self.one.finish(), inputs, [(self.setup.nx, self.moving.coordinates())])[0]


def prepared_columns(ready: Sequence, together: int, reach: SX) -> list[SX]:
    """Return flags of the groups within reach, and system, c, push, rest and (if there are some) jump of all contact points."""
    gaps = [ca.mmin(ca.vertcat(*(p.gap for p in ready[k : k + together]))) for k in range(0, len(ready), together)]
    columns = [[p.system for p in ready], [p.c for p in ready], [p.push for p in ready], [p.rest for p in ready]]
    columns += [] if ready[0].jump is None else [[p.jump for p in ready]]
    return [ca.densify(x) for x in (ca.vertcat(*gaps) < reach, *(ca.vertcat(*column) for column in columns))]


def _on_link() -> ca.Function:
    """Return the function from the poses of a link, and of a shape in it, to the pose of the shape."""
    x, y = SX.sym("x", POSE), SX.sym("y", POSE)
    (R, p), (turn, at) = pose(x), pose(y)
    return ca.Function("on_link", [x, y], [ca.vertcat(ca.vec(R @ turn), p + R @ at)])
