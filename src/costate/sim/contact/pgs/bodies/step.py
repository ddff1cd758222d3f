"""The substep by sweeps of worlds that hold nothing but free bodies and static geometry.

All bodies move by one function, and a body is a short record of mass, inertia and twist: code does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POSE, pose
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.sim.contact.pair_kinds import Kind, Read, rows_of, same_for_all
from costate.sim.contact.pgs.bodies.bodies import CONSTANTS, INERTIA, NV, RECORD, Moving, OneBody
from costate.sim.contact.pgs.bodies.points import BodyVisit, rate_of, system_of
from costate.sim.contact.pgs.stages import Free, Given, Motion, Placed
from costate.sim.contact.pgs.step import Step
from costate.sim.setup import Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


@dataclass(frozen=True, eq=False)
class Bodies(Given):
    """Values that all pieces share."""

    bodies: Var
    """Constants of all bodies."""
    gravity: Var


@dataclass(frozen=True, eq=False)
class PlacedBodies(Placed):
    """A configuration."""

    records: Var
    """RECORD numbers of all bodies, and of what does not move."""


class BodyStep(Step[Bodies, PlacedBodies]):
    """The stages of a substep of free bodies. Velocities of carriers are their twists."""

    def __init__(self, options: PGS, setup: Setup):
        super().__init__(options, setup)
        self.bodies = Moving(setup)
        self.carriers, self.count = self.bodies.count, self.pairs.count
        self.visit = BodyVisit(self.pairs.together, self.options)
        self.one = OneBody(setup)

    def given(self, b: ProgramBuilder, args: Sequence[Var]) -> Bodies:
        s = self.symbols
        numbers = self.constants(b, args, self.bodies.constants(s), s.params["gravity", ""])
        return Bodies(self.unchanged(b, args), *numbers)

    # --- states ---------------------------------------------------------------------------------------------------

    def _of_bodies(self, x: Var, given: Bodies, *twists: Var) -> list[Read]:
        """Return state, constants and twists of every body."""
        constants = given.bodies, np.arange(self.carriers)[:, None] * CONSTANTS + np.arange(CONSTANTS)
        return [(x, self.bodies.coordinates()), constants, *((v, rows_of(self.carriers, NV)) for v in twists)]

    def _state(self, b: ProgramBuilder, body: ca.Function, reads: list[Read]) -> Var:
        return b.map(body, reads, [(self.setup.nx, self.bodies.coordinates())])[0]

    def _placed(self, b: ProgramBuilder, x: Var, given: Bodies) -> PlacedBodies:
        poses, records, twists = b.map(self.one.place(), self._of_bodies(x, given), [None] * 3)
        links = self.pairs.links()
        pose_of_world = b.constant([*np.eye(3).ravel(), 0, 0, 0])
        on = b.concat(poses, pose_of_world), self._of_links(links, POSE)
        (shapes,) = b.map(_on_link, [on, (given.local, rows_of(len(links), POSE))], [None])
        return PlacedBodies(shapes, b.concat(twists, b.zeros(NV)), b.concat(records, b.zeros(RECORD)))

    def place(self, b: ProgramBuilder, x: Var, clock: Var, given: Bodies) -> tuple[PlacedBodies, Free]:
        return self._placed(b, x, given), self.free(b, x, clock, given)

    def with_velocity(self, b: ProgramBuilder, x: Var, now: Var, given: Bodies) -> Var:
        return self._state(b, self.one.with_velocity(), self._of_bodies(x, given, now))

    def free(self, b: ProgramBuilder, x: Var, clock: Var, given: Bodies) -> Free:
        more = [(v, same_for_all(self.carriers, v.size)) for v in (given.gravity, clock)]
        twists, drifts, speeds = b.map(self.one.free(), [*self._of_bodies(x, given), *more], [None] * 3)
        still = b.zeros(NV)
        return Free(b.concat(twists, still), b.concat(drifts, still), b.trace(ca.mmax, speeds))

    def travel(self, b: ProgramBuilder, motion: Motion[Bodies, PlacedBodies], tau: Var) -> Var:
        def end(now: SX, after: SX, tau: SX, clock: SX) -> SX:
            return now + tau / clock[0] * (after - now)

        velocities = [motion.piece.placed.now, motion.after]
        reached = self.over_carriers(b, end, velocities, tau, motion.piece.clock)
        return self._travelled(b, motion, tau, reached)

    def _travelled(self, b: ProgramBuilder, motion: Motion[Bodies, PlacedBodies], tau: Var, end: Var) -> Var:
        """Add the state after a time of a motion. end: twists at that time."""
        mean = self.over_carriers(b, lambda v, a, tau: v + tau * a, [motion.base, motion.slope], tau)
        reads = self._of_bodies(motion.piece.carry.x, motion.piece.given, mean, end)
        return self._state(b, self.one.travel(), [*reads, (tau, same_for_all(self.carriers, 1))])

    def ahead(self, b: ProgramBuilder, motion: Motion[Bodies, PlacedBodies], tau: Var) -> PlacedBodies:
        end = self.over_carriers(b, lambda v, a, tau: v + 2 * tau * a, [motion.base, motion.slope], tau)
        return self._placed(b, self._travelled(b, motion, tau, end), motion.piece.given)

    # --- contact points -------------------------------------------------------------------------------------------

    def _of_links(self, links: Sequence[str], width: int, start: int = 0, size: int | None = None) -> np.ndarray:
        """Return the table of numbers start .. start + size of the bodies of some links, with `width` numbers per body."""
        numbers = np.array([self.bodies.number(link) for link in links])
        return numbers[:, None] * width + start + np.arange(width - start if size is None else size)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        a, b = (np.array([self.bodies.number(x) for x in links])[self.pairs.owner] for links in self.pairs.sides())
        return a, b

    def more(self, placed: PlacedBodies) -> list[Read]:
        owner = self.pairs.owner
        return [(placed.records, self._of_links(x, RECORD, 3, INERTIA)[owner]) for x in self.pairs.sides()]

    def preparation(self, b: ProgramBuilder, placed: PlacedBodies, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        members = list(kind.members)
        reads = [(placed.records, self._of_links(links, RECORD)[members]) for links in self.pairs.sides()]
        return lambda point, a, b: system_of(point, a, b, self.options.cfm), reads

    def rates(self, b: ProgramBuilder, placed: PlacedBodies, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        members, reads = list(kind.members), []
        for links in self.pairs.sides():
            reads += [(placed.records, self._of_links(links, RECORD, 0, 3)[members])]
            reads += [(placed.now, self._of_links(links, NV)[members])]
        return lambda point, a, v, b, w: rate_of(point, a, b, (v, w)), reads


def _on_link(link: SX, shape: SX) -> SX:
    """Return the pose of a shape from those of its link, and of the shape in it."""
    (R, p), (turn, at) = pose(link), pose(shape)
    return ca.vertcat(ca.vec(R @ turn), p + R @ at)
