"""The pairwise substep of worlds that hold nothing but free bodies and static geometry.

All bodies move by one function, and a body is a short record of mass, inertia and twist: code does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POSE, pose
from costate.kernel.ir.program import Var
from costate.sim.contact.pair_kinds import Kind, Read
from costate.sim.contact.pgs.pairwise.bodies import CONSTANTS, INERTIA, NV, RECORD, Moving, OneBody
from costate.sim.contact.pgs.pairwise.points import BodyVisit, rate_of, system_of
from costate.sim.contact.pgs.pairwise.step import PairwiseStep, rows_of, same_for_all
from costate.sim.contact.pgs.pieces import Scope
from costate.sim.setup import Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


class BodyStep(PairwiseStep):
    """The stages of a substep of free bodies. Velocities of carriers are their twists."""

    def __init__(self, options: PGS, setup: Setup):
        super().__init__(options, setup)
        self.moving = Moving(setup)
        self.carriers, self.count = self.moving.count, self.pairs.count
        self.visit = BodyVisit(self.pairs.together, self.options)
        self.one = OneBody(setup)

    def numbers(self) -> dict[str, SX]:
        s = self.symbols
        return super().numbers() | {"bodies": self.moving.constants(s), "gravity": s.params["gravity", ""]}

    # --- states ---------------------------------------------------------------------------------------------------

    def _of_bodies(self, scope: Scope, x: Var, *twists: Var) -> list[Read]:
        """Return state, constants and twists of every body."""
        n = self.carriers
        constants = scope["bodies"], np.arange(n)[:, None] * CONSTANTS + np.arange(CONSTANTS)
        return [(x, self.moving.coordinates()), constants, *((v, rows_of(n, NV)) for v in twists)]

    def _state(self, scope: Scope, body: ca.Function, reads: list[Read]) -> Var:
        return scope.b.map(body, reads, [(self.setup.nx, self.moving.coordinates())])[0]

    def _placed(self, scope: Scope, x: Var) -> None:
        """Set poses, records and twists at a state."""
        b = scope.b
        poses, records, twists = b.map(self.one.place(), self._of_bodies(scope, x), [None] * 3)
        scope["records"], scope["now"] = b.concat(records, b.zeros(RECORD)), b.concat(twists, b.zeros(NV))
        links = self.pairs.links()
        pose_of_world = b.constant([*np.eye(3).ravel(), 0, 0, 0])
        on = b.concat(poses, pose_of_world), self._of_links(links, POSE)
        (scope["poses"],) = b.map(_on_link, [on, (scope["local"], rows_of(len(links), POSE))], [None])

    def place(self, scope: Scope) -> None:
        self._placed(scope, scope["x"])
        self.free(scope)

    def with_velocity(self, scope: Scope, now: Var) -> Var:
        return self._state(scope, self.one.with_velocity(), self._of_bodies(scope, scope["x"], now))

    def free(self, scope: Scope) -> None:
        b, n = scope.b, self.carriers
        more = [(scope[k], same_for_all(n, scope[k].size)) for k in ("gravity", "clock")]
        twists, drifts, speeds = b.map(self.one.free(), [*self._of_bodies(scope, scope["x"]), *more], [None] * 3)
        scope["free"], scope["drift"] = (b.concat(x, b.zeros(NV)) for x in (twists, drifts))
        scope["fastest"] = b.trace(ca.mmax, speeds)

    def travel(self, scope: Scope, tau: Var) -> Var:
        def end(now: SX, after: SX, tau: SX, clock: SX) -> SX:
            return now + tau / clock[0] * (after - now)

        reached = self.over_carriers(scope.b, end, scope.pick(("now", "after")), tau, scope["clock"])
        return self._travelled(scope, tau, reached)

    def _travelled(self, scope: Scope, tau: Var, end: Var) -> Var:
        """Add the state after a time of a motion. end: twists at that time."""
        mean = self.over_carriers(scope.b, lambda v, a, tau: v + tau * a, scope.pick(("base", "slope")), tau)
        reads = [*self._of_bodies(scope, scope["x"], mean, end), (tau, same_for_all(self.carriers, 1))]
        return self._state(scope, self.one.travel(), reads)

    def ahead(self, scope: Scope) -> None:
        tau = scope["tau"]
        end = self.over_carriers(scope.b, lambda v, a, tau: v + 2 * tau * a, scope.pick(("base", "slope")), tau)
        self._placed(scope, self._travelled(scope, tau, end))

    # --- contact points -------------------------------------------------------------------------------------------

    def _of_links(self, links: Sequence[str], width: int, start: int = 0, size: int | None = None) -> np.ndarray:
        """Return the table of numbers start .. start + size of the bodies of some links, with `width` numbers per body."""
        numbers = np.array([self.moving.number(link) for link in links])
        return numbers[:, None] * width + start + np.arange(width - start if size is None else size)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        a, b = (np.array([self.moving.number(x) for x in links])[self.pairs.owner] for links in self.pairs.sides())
        return a, b

    def more(self, scope: Scope) -> list[Read]:
        owner = self.pairs.owner
        return [(scope["records"], self._of_links(x, RECORD, 3, INERTIA)[owner]) for x in self.pairs.sides()]

    def preparation(self, scope: Scope, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        members = list(kind.members)
        reads = [(scope["records"], self._of_links(links, RECORD)[members]) for links in self.pairs.sides()]
        return lambda point, a, b: system_of(point, a, b, self.options.cfm), reads

    def rates(self, scope: Scope, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        members, reads = list(kind.members), []
        for links in self.pairs.sides():
            reads += [(scope["records"], self._of_links(links, RECORD, 0, 3)[members])]
            reads += [(scope["now"], self._of_links(links, NV)[members])]
        return lambda point, a, v, b, w: rate_of(point, a, b, (v, w)), reads


def _on_link(link: SX, shape: SX) -> SX:
    """Return the pose of a shape from those of its link, and of the shape in it."""
    (R, p), (turn, at) = pose(link), pose(shape)
    return ca.vertcat(ca.vec(R @ turn), p + R @ at)
