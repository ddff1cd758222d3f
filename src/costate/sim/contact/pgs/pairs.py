"""The pairs of a world and their groups of contact points, as index tables.

A group is up to four contact points of one pair that a sweep visits together. Groups are numbered in the order of the pairs, as
the rows of one system are. Programs run kind after kind, so their results are ordered by kind: `made_at` leads from one order
to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import BOX, bounding_box, boxes_apart
from costate.collision.narrow import POINT, POSE, point_program
from costate.collision.pairs import Placed
from costate.collision.shapes import size_symbols
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.sim.contact.pair_kinds import Kind, Pair, Read, ShapeTable, pair_kinds, pose_numbers, side_tables, starts
from costate.sim.setup import Setup, Symbols


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of shapes, and groups of their contact points."""

    setup: Setup
    symbols: Symbols

    @cached_property
    def placed(self) -> dict[int, Placed]:
        """Shapes in their links."""
        return {k: self.symbols.local(k) for k in self.symbols.used}

    @cached_property
    def shapes(self) -> ShapeTable:
        sizes = (size_symbols(p.solid).numel() for p in self.placed.values())
        return ShapeTable(self._at(POSE), starts(self.placed, sizes))

    def _at(self, width: int) -> dict[int, int]:
        """Return the first element of every shape in a vector with `width` numbers per shape."""
        return {k: n * width for n, k in enumerate(self.placed)}

    @cached_property
    def kinds(self) -> list[Kind]:
        return pair_kinds(self.setup.scene.pairs, self.placed, point_program)

    def members(self, kind: Kind) -> list[Pair]:
        """Return the pairs of a kind."""
        return [self.setup.scene.pairs[m] for m in kind.members]

    # --- groups ---------------------------------------------------------------------------------------------------

    @cached_property
    def together(self) -> int:
        """Contact points of a group: as many as divide those of all pairs, at most four."""
        return gcd(4, *(kind.points for kind in self.kinds))

    @cached_property
    def first(self) -> np.ndarray:
        """First group of every pair, (pairs + 1,)."""
        sizes = np.zeros(len(self.setup.scene.pairs), int)
        for kind in self.kinds:
            sizes[list(kind.members)] = kind.points // self.together
        return np.concatenate([[0], np.cumsum(sizes)]).astype(int)

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.first[-1])

    @cached_property
    def owner(self) -> np.ndarray:
        """Pair of every group."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def made_at(self) -> np.ndarray:
        """Number of every group among those of all kinds, one kind after the other."""
        order = np.concatenate([np.zeros(0, int), *(self.groups(kind).ravel() for kind in self.kinds)])
        return np.argsort(order)

    def groups(self, kind: Kind) -> np.ndarray:
        """Return the groups of every pair of a kind, (members, groups per pair)."""
        return self.first[list(kind.members)][:, None] + np.arange(kind.points // self.together)

    # --- shapes ---------------------------------------------------------------------------------------------------

    def shape_constants(self) -> list[SX]:
        """Return poses in their links, sizes and bounding boxes of all shapes."""
        placed = self.placed.values()
        poses = [ca.densify(pose_numbers(p)) for p in placed]
        sizes, boxes = [size_symbols(p.solid) for p in placed], [bounding_box(p.solid) for p in placed]
        return [ca.densify(ca.vertcat(SX(0, 1), *x)) for x in (poses, sizes, boxes)]

    def links(self) -> list[str]:
        """Return the link of every shape."""
        return [self.setup.scene.colliders[k].link for k in self.placed]

    def sides(self) -> tuple[list[str], list[str]]:
        """Return the links of the first and of the second shape of every pair."""
        colliders = self.setup.scene.colliders
        a, b = ([colliders[p[side]].link for p in self.setup.scene.pairs] for side in (0, 1))
        return a, b

    def geometry(self, kind: Kind, poses: Var, sizes: Var) -> list[Read]:
        """Return the inputs of the program of a kind."""
        return self.shapes.reads(self.members(kind), kind.program, poses, sizes)

    def near(self, b: ProgramBuilder, kind: Kind, poses: Var, boxes: Var, reach: Var) -> Var:
        """Add the flags of the pairs of a kind whose bounding boxes are within reach."""
        members = self.members(kind)
        tables = [(poses, t) for t in side_tables(self._at(POSE), members, (POSE, POSE))]
        tables += [(boxes, t) for t in side_tables(self._at(BOX), members, (BOX, BOX))]
        return b.map(_within, [*tables, (reach, np.zeros((len(members), 1), int))], [None])[0]

    def all_points(self, b: ProgramBuilder, poses: Var, sizes: Var) -> Var:
        """Add POINT numbers of every contact point of every pair, none left out, in the order of the pairs."""
        found = [b.map(kind.program, self.geometry(kind, poses, sizes), [None])[0] for kind in self.kinds]
        width = self.together * POINT
        return b.map(lambda x: x, [(joined(b, found), self.made_at[:, None] * width + np.arange(width))], [None])[0]


def joined(b: ProgramBuilder, values: Sequence[Var]) -> Var:
    """Return one vector of several."""
    return b.concat(*values) if values[1:] else values[0]


def _within(x: SX, y: SX, s: SX, t: SX, reach: SX) -> SX:
    return boxes_apart(x, y, s, t) < reach
