"""Contact points: walks over the pairs of every kind, which leave out pairs that no sample of a vector needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import BOX, boxes_apart
from costate.collision.contact_point import pose
from costate.collision.narrow import POSE
from costate.collision.shapes import Plane
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.derive import vjp
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.newton.pairwise.kinds import Geometry, Pairs
from costate.sim.contact.pair_kinds import Read, ShapeTable, side_tables

Vars = list[Var]
SLACK = 1e-5
"""Distance that shapes count as near beyond their margin, since float32 rounds [m]."""


@dataclass(frozen=True, eq=False)
class Places:
    """The stages that find the contact points of a world. Lists have an entry for each kind of pair."""

    pairs: Pairs

    @cached_property
    def counts(self) -> list[int]:
        """Numbers of pairs."""
        return [len(g.members) for g in self.pairs.geometries]

    def split(self, b: ProgramBuilder, flags: Var) -> Vars:
        """Return the flags of every kind from those of all pairs."""
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        return [b.slice(flags, int(at), n) for at, n in zip(ends, self.counts, strict=False)]

    def near(self, b: ProgramBuilder, poses: Var, boxes: Var) -> Vars:
        """Add flags: 1 where two shapes may be within their margin."""
        found = []
        for g in self.pairs.geometries:
            members = [self.pairs.pairs[n] for n in g.members]
            reads = [(poses, t) for t in side_tables(self.pairs.places(POSE), members, (POSE, POSE))]
            reads += [(boxes, t) for t in side_tables(self.pairs.places(BOX), members, (BOX, BOX))]
            found += b.map(partial(near, g), [*reads, self.margins(b, g)], [None])
        return found

    def points(self, b: ProgramBuilder, flags: Vars, poses: Var, sizes: Var) -> Vars:
        """Add the contact points of all pairs, kind by kind."""
        given = zip(self.programs, flags, strict=True)
        return [b.call(program, flag, poses, sizes)[0] for program, flag in given]

    def touching(self, b: ProgramBuilder, near: Vars, points: Vars) -> tuple[Var, Var]:
        """Add flags of all pairs and of all contact points: 1 where they are within their margin."""
        pairs, each = [], []
        for g, flag, found in zip(self.pairs.geometries, near, points, strict=True):
            n, k = len(g.members), g.points
            reads = [(found, np.arange(g.size).reshape(n, -1)), self.margins(b, g)]
            sums = [(n, np.arange(n)[:, None]), (n * k, np.arange(n * k).reshape(n, k))]
            _, (pair, point), _ = b.walk(partial(_touch, g), flag, [], reads, sums)
            pairs.append(pair)
            each.append(point)
        return joined(b, pairs), joined(b, each)

    def backward(self, b: ProgramBuilder, flags: Vars, poses: Var, sizes: Var, seeds: Var) -> tuple[Var, Var]:
        """Add the gradients of poses and sizes, from those of all contact points."""
        grads, at = [], 0
        for g, program, flag in zip(self.pairs.geometries, self.programs, flags, strict=True):
            seed = b.slice(seeds, at, g.size)
            grads.append(b.call(vjp(program, [1, 2], [0]), flag, poses, sizes, seed))
            at += g.size
        of_poses, of_sizes = zip(*grads, strict=True)
        return total(b, of_poses), total(b, of_sizes)

    @cached_property
    def programs(self) -> list[Program]:
        """Programs (flags, poses, sizes) -> contact points."""
        poses, sizes, _ = (x.numel() for x in self.pairs.shape_numbers())
        table, made = ShapeTable(self.pairs.places(POSE), self.pairs.size_at), []
        for g in self.pairs.geometries:
            b = ProgramBuilder("points")
            flags, x, size = b.inputs(len(g.members), poses, sizes)
            reads = table.reads([self.pairs.pairs[n] for n in g.members], g.program, x, size)
            made.append(b.program(*b.walk(g.program, flags, [], reads)[2]))
        return made

    def margins(self, b: ProgramBuilder, g: Geometry) -> Read:
        return b.constant([self.pairs.margins[n] for n in g.members]), np.arange(len(g.members))[:, None]


def near(g: Geometry, x: SX, y: SX, s: SX, t: SX, margin: SX) -> SX:
    """Return whether two shapes with these poses and bounding boxes may be within their margin."""
    planes = [isinstance(solid, Plane) for solid in g.solids]
    if not any(planes):
        return boxes_apart(x, y, s, t) < margin + SLACK
    (above, box), ground = ((y, t), x) if planes[0] else ((x, s), y)
    (A, a), (B, b) = pose(above), pose(ground)
    return ca.dot(B[:, 2], a + A @ box[:3] - b) - ca.dot(ca.fabs(A.T @ B[:, 2]), box[3:]) < margin + SLACK


def _touch(g: Geometry, points: SX, margin: SX) -> tuple[SX, SX]:
    """Return whether any contact point of a pair is within the margin, and which are."""
    on = ca.vertcat(*(row[0] < margin for row in ca.vertsplit(points, g.width)))
    return ca.mmax(on), on


def joined(b: ProgramBuilder, values: Sequence[Var]) -> Var:
    """Return one vector of several."""
    return b.concat(*values) if values[1:] else values[0]


def total(b: ProgramBuilder, values: Sequence[Var]) -> Var:
    """Return the sum of several vectors."""
    found = values[0]
    for v in values[1:]:
        found = b.add(found, v)
    return found
