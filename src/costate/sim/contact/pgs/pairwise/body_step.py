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
        numbers = [self.moving.constants(s), *self.pairs.shape_constants(), self.frictions(), self.bounce()]
        outputs = [ca.densify(x) for x in (*numbers, s.params["gravity", ""])]
        found = self.b.call(ca.Function("constants", s.inputs, outputs), *args)
        self.constants, self.local, self.sizes, self.boxes, self.friction, self.restitution, self.gravity = found

    def _of_bodies(self) -> list[Read]:
        """Return state, constants and gravity of every body."""
        n = self.carriers
        rows = np.arange(n)[:, None] * CONSTANTS + np.arange(CONSTANTS)
        return [(self.x, self.moving.coordinates()), (self.constants, rows), (self.gravity, same_for_all(n, 3))]

    def _free(self) -> None:
        b = self.b
        self.velocity, poses, records, speeds = b.map(self.one.free(), self._of_bodies(), [None] * 4)
        self.records = b.concat(records, b.zeros(RECORD))
        links = self.pairs.links()
        pose_of_world = b.constant([*np.eye(3).ravel(), 0, 0, 0])
        on = b.concat(poses, pose_of_world), self._of_links(links, POSE)
        (self.poses,) = b.map(_on_link, [on, (self.local, rows_of(len(links), POSE))], [None])
        self.reach = b.trace(lambda v: REACH * self.setup.dt * (ca.mmax(v) + self.correction_speed), speeds)

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

        def ready(points: SX, x: SX, y: SX, restitution: SX, reach: SX) -> list[SX]:
            bounce = restitution if self.bounces else SX(0)
            each = ca.vertsplit(points, POINT)
            found = [prepare(point, x, y, bounce, self.options, self.setup.dt) for point in each]
            return prepared_columns(found, self.pairs.together, reach)

        b = ProgramBuilder("points")
        geometry, more = b.like(kind.program), b.inputs(RECORD, RECORD, 1, 1)
        return b.program(*b.trace(ready, *b.call(kind.program, *geometry), *more)), reads

    def finish(self, change: Var, mean: Var) -> Var:
        twists = rows_of(self.carriers, NV)
        inputs = [*self._of_bodies(), (self.velocity, twists), (change, twists), (mean, twists)]
        return self.b.map(self.one.finish(), inputs, [(self.setup.nx, self.moving.coordinates())])[0]


def prepared_columns(ready: Sequence, together: int, reach: SX) -> list[SX]:
    """Return flags of the groups within reach, and system, c, push, rest and (if there are some) jump of all contact points."""
    gaps = [ca.mmin(ca.vertcat(*(p.gap for p in ready[k : k + together]))) for k in range(0, len(ready), together)]
    columns = [[p.system for p in ready], [p.c for p in ready], [p.push for p in ready], [p.rest for p in ready]]
    columns += [] if ready[0].jump is None else [[p.jump for p in ready]]
    return [ca.vertcat(*gaps) < reach, *(ca.vertcat(*column) for column in columns)]


def _on_link(link: SX, shape: SX) -> SX:
    """Return the pose of a shape from those of its link, and of the shape in it."""
    (R, p), (turn, at) = pose(link), pose(shape)
    return ca.vertcat(ca.vec(R @ turn), p + R @ at)
