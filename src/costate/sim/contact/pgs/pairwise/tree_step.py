"""The pairwise substep of any world: robots, free bodies, drives, tendons and constraints.

Free motion is the same straight code as that of a small world, and grows with the number of joints; pairs and their contact points
do not make it longer. Limits and friction of joints are groups of their own, visited after the contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.narrow import POINT
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.pair_kinds import Kind, Read, pose_numbers
from costate.sim.contact.pgs.pairwise.body_step import prepared_columns
from costate.sim.contact.pgs.pairwise.step import PairwiseStep, same_for_all
from costate.sim.contact.pgs.pairwise.tree_points import Carrier, JointGroups, TreeVisit, prepare
from costate.sim.contact.pgs.pairwise.trees import Trees
from costate.sim.contact.rows import constraint_rows
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import free_motion
from costate.sim.setup import Setup

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

REACH = 4
"""Reach in units of the way of the fastest shape: two may come towards each other, and impulses may make links faster."""


class TreeStep(PairwiseStep):
    """The stages of a substep of trees."""

    def __init__(self, options: PGS, setup: Setup, b: ProgramBuilder, args: Sequence[Var]):
        super().__init__(options, setup, b)
        s = self.symbols
        self.args, self.explicit = args, setup.method.travels_before
        self.trees = Trees(s)
        self.joints = JointGroups(self.trees, constraint_rows(s, s.q, [], setup.dt), self.pairs.together)
        self.carriers, self.count = self.trees.count, self.pairs.count + self.joints.count
        self.visit = TreeVisit(self.pairs.together, options, self.trees.width)
        self.links = list(dict.fromkeys(self.pairs.links()))
        self._free()

    def _free(self) -> None:
        s, options = self.symbols, self.options
        free = free_motion(s, s.q, s.v, s.u, joint_friction=not options.joint_friction)
        speeds = [free.velocity, s.v] if self.explicit else [free.velocity]
        frictions, restitution = self.frictions(self.joints.count), self.bounce()
        _, sizes, boxes = self.pairs.shape_constants()
        placed = s.detection.placed
        numbers = {
            "velocity": free.velocity,
            "poses": ca.vertcat(*(ca.densify(pose_numbers(placed[k])) for k in self.pairs.placed)),
            "sizes": sizes,
            "boxes": boxes,
            "friction": frictions,
            "restitution": restitution,
            "reach": REACH * self.setup.dt * (self.trees.fastest(self.links, speeds) + self.correction_speed),
            "trees": self.trees.records(free),
            "link_records": self.trees.link_records(self.links),
        }
        joints = self.joints.prepared(free, restitution, options, self.setup.dt, self.explicit)
        outputs = [ca.densify(x) for x in (*numbers.values(), *joints)]
        found = self.b.call(ca.Function("free", s.inputs, outputs), *self.args)
        self.velocity, self.poses, self.sizes, self.boxes, self.friction, self.restitution, self.reach = found[:7]
        self.tree_records, self.link_records = found[7:9]
        self._joint_numbers = found[9:]

    def joint_groups(self) -> list[Var]:
        return self._joint_numbers if self.joints.count else []

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

    def preparation(self, kind: Kind) -> tuple[Program, list[Read]]:
        members, n = list(kind.members), len(kind.members)
        a, b, same = self._pair_trees()
        width, link_width = self.trees.record, self.trees.link_record
        reads: list[Read] = []
        for links in self.pairs.sides():
            numbers = np.array([self.links.index(links[m]) for m in members])
            reads.append((self.link_records, numbers[:, None] * link_width + np.arange(link_width)))
        reads += [(self.tree_records, side[members][:, None] * width + np.arange(width)) for side in (a, b)]
        reads += [(self.b.constant(same), np.array(members)[:, None])]
        reads += [(self.restitution, same_for_all(n, 1)), (self.reach, same_for_all(n, 1))]
        return self._program(kind), reads

    def _program(self, kind: Kind) -> Program:
        """Build (geometry, links, trees, same, restitution, reach) -> (flags, system, c, push, rest, [jump])."""
        b, trees = ProgramBuilder("points"), self.trees

        def ready(points: SX, *given: SX) -> list[SX]:
            link_a, link_b, tree_a, tree_b, same, restitution, reach = given
            sides = Carrier(trees.width, link_a, tree_a), Carrier(trees.width, link_b, tree_b)
            more = same, restitution if self.bounces else SX(0), self.options, self.setup.dt, self.explicit
            found = [prepare(point, *sides, *more) for point in ca.vertsplit(points, POINT)]
            return prepared_columns(found, self.pairs.together, reach)

        geometry = b.like(kind.program)
        numbers = b.inputs(*[trees.link_record] * 2, *[trees.record] * 2, 1, 1, 1)
        return b.program(*b.trace(ready, *b.call(kind.program, *geometry), *numbers))

    def finish(self, change: Var, mean: Var) -> Var:
        model, nq, dt, slots = self.setup.scene.model, self.setup.nq, self.setup.dt, self.trees.slots
        nv = self.setup.nv

        def after(x: SX, free: SX, change: SX, mean: SX) -> SX:
            travelled = (x[nq : nq + nv] if self.explicit else free) + mean[slots]
            return advance(model, x[:nq], travelled, free + change[slots], dt)

        return self.b.trace(after, self.args[0], self.velocity, change, mean)
