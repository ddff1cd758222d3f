"""The pairwise substep of any world: robots, free bodies, drives, tendons and constraints.

Free motion is the same straight code as that of a small world, and grows with the number of joints; pairs and their contact points
do not make it longer. Limits and friction of joints are groups of their own, visited after the contacts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel.ir.program import Var
from costate.sim.contact.pair_kinds import Kind, Read, pose_numbers
from costate.sim.contact.pgs.pairwise.step import PairwiseStep
from costate.sim.contact.pgs.pairwise.tree_points import Carrier, JointGroups, TreeVisit, rows_at, system_of
from costate.sim.contact.pgs.pairwise.trees import Trees
from costate.sim.contact.pgs.pieces import Scope
from costate.sim.contact.rows import constraint_rows
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import Free, free_motion
from costate.sim.setup import Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

LEVERS = 2
"""Largest factor by which impulses may raise the speed of links in a motion."""


class TreeStep(PairwiseStep):
    """The stages of a substep of trees. Velocities of carriers are those of their coordinates."""

    def __init__(self, options: PGS, setup: Setup):
        super().__init__(options, setup)
        s = self.symbols
        self.trees = Trees(s)
        self.joints = JointGroups(self.trees, constraint_rows(s, s.q, [], self.setup.h), self.pairs.together)
        self.carriers, self.count = self.trees.count, self.pairs.count + self.joints.count
        self.visit = TreeVisit(self.pairs.together, self.options, self.trees.width)
        self.links = list(dict.fromkeys(self.pairs.links()))

    # --- states ---------------------------------------------------------------------------------------------------

    def _set(self, scope: Scope, numbers: dict[str, SX], x: Var) -> None:
        """Set expressions of the symbols of a step, at a state."""
        s, b = self.symbols, scope.b
        inputs = [*s.inputs, ca.vertcat(self.setup.h, SX.sym("number"))]
        function = ca.Function("stage", inputs, [ca.densify(x) for x in numbers.values()])
        for name, value in zip(numbers, b.call(function, *self.inputs(scope, x), scope["clock"]), strict=True):
            scope[name] = value

    def _places(self) -> dict[str, SX]:
        placed, v = self.symbols.detection.placed, self.symbols.v
        return {
            "poses": ca.vertcat(*(ca.densify(pose_numbers(placed[k])) for k in self.pairs.placed)),
            "now": self.trees.velocities(v),
            "link_records": self.trees.link_records(self.links),
            "joint_gaps": self.joints.gaps(),
        }

    def _free(self) -> dict[str, SX]:
        s = self.symbols
        free = self._free_motion
        fastest = LEVERS * self.trees.fastest(self.links, [free.velocity, s.v])
        velocities = {"free": self.trees.velocities(free.velocity), "drift": self.trees.velocities(free.drift)}
        return velocities | {"fastest": fastest}

    @cached_property
    def _free_motion(self) -> Free:
        s = self.symbols
        return free_motion(s, s.q, s.v, s.u, joint_friction=not self.options.joint_friction)

    def place(self, scope: Scope) -> None:
        free = self._free_motion
        systems = {"trees": self.trees.records(free), "joint_systems": self.joints.systems(free, self.options.cfm)}
        self._set(scope, self._places() | self._free() | systems, scope["x"])

    def free(self, scope: Scope) -> None:
        self._set(scope, self._free(), scope["x"])

    def with_velocity(self, scope: Scope, now: Var) -> Var:
        nq, slots = self.setup.nq, self.trees.slots
        return scope.b.trace(lambda x, now: ca.vertcat(x[:nq], now[slots]), scope["x"], now)

    def travel(self, scope: Scope, tau: Var) -> Var:
        nq, slots = self.setup.nq, self.trees.slots

        def reached(x: SX, clock: SX, base: SX, slope: SX, after: SX, tau: SX) -> SX:
            v = x[nq:] + tau / clock[0] * (after[slots] - x[nq:])
            return advance(self.setup, x[:nq], (base + tau * slope)[slots], v, tau)

        return scope.b.trace(reached, *scope.pick(("x", "clock", "base", "slope", "after")), tau)

    def ahead(self, scope: Scope) -> None:
        nq, slots = self.setup.nq, self.trees.slots

        def reached(x: SX, base: SX, slope: SX, tau: SX) -> SX:
            u, a = base[slots], slope[slots]
            return advance(self.setup, x[:nq], u + tau * a, u + 2 * tau * a, tau)

        x = scope.b.trace(reached, *scope.pick(("x", "base", "slope", "tau")))
        self._set(scope, self._places() | {"joint_rates": self.joints.rates(self.symbols.v)}, x)

    # --- contact points -------------------------------------------------------------------------------------------

    def joint_groups(self, scope: Scope) -> list[Var]:
        return scope.pick(("joint_systems", "joint_gaps")) if self.joints.count else []

    def joint_rates(self, scope: Scope) -> tuple[Var, Var] | None:
        return (scope["joint_gaps"], scope["joint_rates"]) if self.joints.count else None

    def _pair_trees(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the trees of both sides of every pair, and whether they are one: the second is the tree of zeros then."""
        a, b = (np.array([self.trees.tree_of(link) for link in links]) for links in self.pairs.sides())
        same = a == b
        return a, np.where(same, self.trees.count, b), same

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        a, b, _ = self._pair_trees()
        more = self.joints.sides()
        owner = self.pairs.owner
        return np.concatenate([a[owner], more[0]]), np.concatenate([b[owner], more[1]])

    def _reads_of(self, scope: Scope, kind: Kind, trees: str, width: int) -> list[Read]:
        """Return links, numbers of the trees, and whether the trees are one, of the pairs of a kind."""
        members, link_width = list(kind.members), self.trees.link_record
        a, b, same = self._pair_trees()
        reads: list[Read] = []
        for links in self.pairs.sides():
            numbers = np.array([self.links.index(links[m]) for m in members])
            reads.append((scope["link_records"], numbers[:, None] * link_width + np.arange(link_width)))
        reads += [(scope[trees], side[members][:, None] * width + np.arange(width)) for side in (a, b)]
        return [*reads, (scope.b.constant(same), np.array(members)[:, None])]

    def preparation(self, scope: Scope, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        width = self.trees.width

        def system(point: SX, link_a: SX, link_b: SX, tree_a: SX, tree_b: SX, same: SX) -> SX:
            sides = Carrier(width, link_a, tree_a), Carrier(width, link_b, tree_b)
            return system_of(point, *sides, same, self.options)

        return system, self._reads_of(scope, kind, "trees", self.trees.record)

    def rates(self, scope: Scope, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        width = self.trees.width

        def rate(point: SX, link_a: SX, link_b: SX, v: SX, w: SX, same: SX) -> SX:
            J = rows_at(point, Carrier(width, link_a), Carrier(width, link_b), same)
            return J[0, :] @ ca.vertcat(v, w)

        return rate, self._reads_of(scope, kind, "now", width)
