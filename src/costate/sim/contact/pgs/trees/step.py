"""The substep of any world: robots, free bodies, drives, tendons and constraints.

Free motion is the same straight code as that of `Hard`, and grows with the number of joints; pairs and their contact points do not
make it longer. Limits and friction of joints are groups of their own, visited after the contacts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.sim.contact.pair_kinds import Kind, Read, pose_numbers
from costate.sim.contact.pgs.stages import Free, Given, Motion, Placed
from costate.sim.contact.pgs.step import Step
from costate.sim.contact.pgs.trees.points import Carrier, JointGroups, TreeVisit, rows_at, system_of
from costate.sim.contact.pgs.trees.trees import Trees
from costate.sim.contact.rows import constraint_rows
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import Free as FreeMotion
from costate.sim.integrate.free import free_motion
from costate.sim.setup import Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

LEVERS = 2
"""Largest factor by which impulses may raise the speed of links in a motion."""


@dataclass(frozen=True, eq=False)
class PlacedTrees(Placed):
    """A configuration."""

    links: Var
    """Numbers of all links that carry shapes."""
    joint_gaps: Var
    joint_rates: Var
    """Gaps of limits, and how fast they open."""
    trees: Var
    """Numbers of all trees; of size 0 where only rates are looked at."""
    joint_systems: Var
    """Numbers that visits read of limits and friction of joints; likewise."""


class TreeStep(Step[Given, PlacedTrees]):
    """The stages of a substep of trees. Velocities of carriers are those of their coordinates."""

    def __init__(self, options: PGS, setup: Setup):
        super().__init__(options, setup)
        s = self.symbols
        self.trees = Trees(s)
        self.joints = JointGroups(self.trees, constraint_rows(s, s.q, [], self.setup.h), self.pairs.together)
        self.carriers, self.count = self.trees.count, self.pairs.count + self.joints.count
        self.visit = TreeVisit(self.pairs.together, self.options, self.trees.width)
        self.links = list(dict.fromkeys(self.pairs.links()))

    def given(self, b: ProgramBuilder, args: Sequence[Var]) -> Given:
        return Given(self.unchanged(b, args), *self.constants(b, args))

    # --- states ---------------------------------------------------------------------------------------------------

    def _call(self, b: ProgramBuilder, numbers: Sequence[SX], x: Var, clock: Var, given: Given) -> list[Var]:
        """Add expressions of the symbols of a step, at a state."""
        inputs = [*self.symbols.inputs, ca.vertcat(self.setup.h, SX.sym("number"))]
        function = ca.Function("stage", inputs, [ca.densify(x) for x in numbers])
        return b.call(function, *self.inputs(b, x, given), clock)

    def _places(self) -> list[SX]:
        """Return the numbers of PlacedTrees but for its last ones."""
        placed, v = self.symbols.detection.placed, self.symbols.v
        poses = ca.vertcat(SX(0, 1), *(ca.densify(pose_numbers(placed[k])) for k in self.pairs.placed))
        links = self.trees.link_records(self.links)
        return [poses, self.trees.velocities(v), links, self.joints.gaps(), self.joints.rates(v)]

    def _free(self) -> list[SX]:
        free = self._free_motion
        fastest = LEVERS * self.trees.fastest(self.links, [free.velocity, self.symbols.v])
        return [self.trees.velocities(free.velocity), self.trees.velocities(free.drift), fastest]

    @cached_property
    def _free_motion(self) -> FreeMotion:
        s = self.symbols
        return free_motion(s, s.q, s.v, s.u, joint_friction=not self.options.joint_friction)

    def place(self, b: ProgramBuilder, x: Var, clock: Var, given: Given) -> tuple[PlacedTrees, Free]:
        free = self._free_motion
        systems = [self.trees.records(free), self.joints.systems(free, self.options.cfm)]
        found = self._call(b, [*self._places(), *systems, *self._free()], x, clock, given)
        return PlacedTrees(*found[:-3]), Free(*found[-3:])

    def free(self, b: ProgramBuilder, x: Var, clock: Var, given: Given) -> Free:
        return Free(*self._call(b, self._free(), x, clock, given))

    def with_velocity(self, b: ProgramBuilder, x: Var, now: Var, given: Given) -> Var:
        nq, slots = self.setup.nq, self.trees.slots
        return b.trace(lambda x, now: ca.vertcat(x[:nq], now[slots]), x, now)

    def travel(self, b: ProgramBuilder, motion: Motion[Given, PlacedTrees], tau: Var) -> Var:
        nq, slots = self.setup.nq, self.trees.slots

        def reached(x: SX, clock: SX, base: SX, slope: SX, after: SX, tau: SX) -> SX:
            v = x[nq:] + tau / clock[0] * (after[slots] - x[nq:])
            return advance(self.setup, x[:nq], (base + tau * slope)[slots], v, tau)

        carry = motion.piece.carry
        return b.trace(reached, carry.x, carry.clock, motion.base, motion.slope, motion.after, tau)

    def ahead(self, b: ProgramBuilder, motion: Motion[Given, PlacedTrees], tau: Var) -> PlacedTrees:
        nq, slots, piece = self.setup.nq, self.trees.slots, motion.piece

        def reached(x: SX, base: SX, slope: SX, tau: SX) -> SX:
            u, a = base[slots], slope[slots]
            return advance(self.setup, x[:nq], u + tau * a, u + 2 * tau * a, tau)

        x = b.trace(reached, piece.carry.x, motion.base, motion.slope, tau)
        poses, now, links, gaps, rates = self._call(b, self._places(), x, piece.clock, piece.given)
        return PlacedTrees(poses, now, links, gaps, rates, b.zeros(0), b.zeros(0))

    # --- contact points -------------------------------------------------------------------------------------------

    def joint_groups(self, placed: PlacedTrees) -> list[Var]:
        return [placed.joint_systems, placed.joint_gaps] if self.joints.count else []

    def joint_rates(self, placed: PlacedTrees) -> tuple[Var, Var] | None:
        return (placed.joint_gaps, placed.joint_rates) if self.joints.count else None

    def _pair_trees(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the trees of both sides of every pair, and whether they are one: the second is the tree of zeros then."""
        a, b = (np.array([self.trees.tree_of(link) for link in links], int) for links in self.pairs.sides())
        same = a == b
        return a, np.where(same, self.trees.count, b), same

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        a, b, _ = self._pair_trees()
        more = self.joints.sides()
        owner = self.pairs.owner
        return np.concatenate([a[owner], more[0]]), np.concatenate([b[owner], more[1]])

    def _reads_of(self, b: ProgramBuilder, placed: PlacedTrees, kind: Kind, trees: Var, width: int) -> list[Read]:
        """Return links, numbers of the trees, and whether the trees are one, of the pairs of a kind."""
        members, link_width = list(kind.members), self.trees.link_record
        one, other, same = self._pair_trees()
        reads: list[Read] = []
        for links in self.pairs.sides():
            numbers = np.array([self.links.index(links[m]) for m in members])
            reads.append((placed.links, numbers[:, None] * link_width + np.arange(link_width)))
        reads += [(trees, side[members][:, None] * width + np.arange(width)) for side in (one, other)]
        return [*reads, (b.constant(same), np.array(members)[:, None])]

    def preparation(self, b: ProgramBuilder, placed: PlacedTrees, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        width = self.trees.width

        def system(point: SX, link_a: SX, link_b: SX, tree_a: SX, tree_b: SX, same: SX) -> SX:
            sides = Carrier(width, link_a, tree_a), Carrier(width, link_b, tree_b)
            return system_of(point, *sides, same, self.options)

        return system, self._reads_of(b, placed, kind, placed.trees, self.trees.record)

    def rates(self, b: ProgramBuilder, placed: PlacedTrees, kind: Kind) -> tuple[Callable[..., SX], list[Read]]:
        width = self.trees.width

        def rate(point: SX, link_a: SX, link_b: SX, v: SX, w: SX, same: SX) -> SX:
            J = rows_at(point, Carrier(width, link_a), Carrier(width, link_b), same)
            return J[0, :] @ ca.vertcat(v, w)

        return rate, self._reads_of(b, placed, kind, placed.now, width)
