"""The pairs of a mapped world as index tables: which bodies, shapes and places every instance of a program reads."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import BOX, bounding_box, boxes_apart
from costate.collision.narrow import POINT, POSE, pair_key, point_program
from costate.collision.pairs import Placed
from costate.collision.shapes import size_symbols
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.ir.straight import as_program
from costate.sim.contact.pgs.pairwise_bodies import Moving
from costate.sim.setup import Setup, Symbols


@dataclass(frozen=True, eq=False)
class Kind:
    """All pairs of one kind: one program, with other sizes and poses for each."""

    program: Program
    """(pose of a, pose of b, sizes of a, sizes of b) -> POINT numbers for each place."""
    members: tuple[int, ...]
    """Numbers of the pairs."""

    @property
    def places(self) -> int:
        return self.program.out_sizes[0] // POINT


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of shapes, and instances: up to four places of one pair, which a sweep visits together."""

    setup: Setup
    symbols: Symbols

    @cached_property
    def moving(self) -> Moving:
        return Moving(self.setup)

    @cached_property
    def placed(self) -> dict[int, Placed]:
        """Shapes in their links."""
        return {k: self.symbols.local(k) for k in self.symbols.used}

    @cached_property
    def shapes(self) -> list[int]:
        return list(self.placed)

    @cached_property
    def kinds(self) -> list[Kind]:
        groups: dict[object, list[int]] = {}
        for k, (i, j) in enumerate(self.setup.scene.pairs):
            groups.setdefault(pair_key(self.placed[i].solid, self.placed[j].solid), []).append(k)
        return [Kind(self._program(members[0]), tuple(members)) for members in groups.values()]

    def _program(self, pair: int) -> Program:
        i, j = self.setup.scene.pairs[pair]
        return point_program(self.placed[i].solid, self.placed[j].solid)

    # --- instances ------------------------------------------------------------------------------------------------

    @cached_property
    def together(self) -> int:
        """Places of an instance: as many as divide the places of all pairs, at most four."""
        return gcd(4, *(kind.places for kind in self.kinds))

    @cached_property
    def of_pair(self) -> list[int]:
        """Kind of every pair."""
        found = dict.fromkeys(range(len(self.setup.scene.pairs)), 0)
        found.update({m: k for k, kind in enumerate(self.kinds) for m in kind.members})
        return list(found.values())

    @cached_property
    def first(self) -> np.ndarray:
        """First instance of every pair; instances are in the order of the pairs, as rows of a small world are. (pairs + 1,)."""
        sizes = [self.kinds[k].places // self.together for k in self.of_pair]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(int)

    @property
    def count(self) -> int:
        """Of instances."""
        return int(self.first[-1])

    @cached_property
    def owner(self) -> np.ndarray:
        """Pair of every instance."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def made_at(self) -> np.ndarray:
        """Where an instance is among those of all kinds, one kind after the other."""
        order = np.concatenate([self.instances(kind).ravel() for kind in self.kinds])
        return np.argsort(order)

    def instances(self, kind: Kind) -> np.ndarray:
        """Of every pair of a kind, (members, instances per pair)."""
        return self.first[list(kind.members)][:, None] + np.arange(kind.places // self.together)

    def bodies(self, width: int, start: int = 0, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Tables of numbers start .. start + size of both bodies of every pair, in rows of `width` per body."""
        size = width - start if size is None else size
        links = [[self.moving.number(self.setup.scene.colliders[k].link) for k in p] for p in self.setup.scene.pairs]
        rows = np.array(links)[:, :, None] * width + start + np.arange(size)
        return rows[:, 0], rows[:, 1]

    # --- shapes ---------------------------------------------------------------------------------------------------

    @cached_property
    def _offsets(self) -> dict[int, int]:
        """Where the sizes of a shape begin."""
        lengths = [size_symbols(self.placed[k].solid).numel() for k in self.shapes]
        return dict(zip(self.shapes, np.concatenate([[0], np.cumsum(lengths)]).astype(int).tolist(), strict=False))

    def shape_constants(self) -> list[SX]:
        """Poses in their links, sizes and bounding boxes of all shapes."""
        placed = self.placed.values()
        poses = ca.vertcat(*(ca.vertcat(ca.vec(ca.densify(p.rotation)), ca.densify(p.position)) for p in placed))
        sizes = ca.vertcat(*(size_symbols(p.solid) for p in placed))
        return [poses, ca.densify(sizes), ca.densify(ca.vertcat(*(bounding_box(p.solid) for p in placed)))]

    def shape_links(self) -> np.ndarray:
        """Pose of the link of every shape among those of the bodies, (shapes, POSE)."""
        links = [self.moving.number(self.setup.scene.colliders[k].link) for k in self.shapes]
        return np.array(links)[:, None] * POSE + np.arange(POSE)

    def sides(self, members: tuple[int, ...], width: int) -> list[np.ndarray]:
        """Tables of the shapes of some pairs, in rows of `width` per shape."""
        at = {k: n for n, k in enumerate(self.shapes)}
        pairs = np.array([[at[k] for k in self.setup.scene.pairs[m]] for m in members])
        return [pairs[:, side, None] * width + np.arange(width) for side in (0, 1)]

    def size_tables(self, kind: Kind) -> list[np.ndarray]:
        pairs = [self.setup.scene.pairs[m] for m in kind.members]
        widths = kind.program.in_sizes[2:]
        return [np.array([self._offsets[p[k]] + np.arange(n) for p in pairs]) for k, n in enumerate(widths)]

    def geometry(self, b: ProgramBuilder, kind: Kind, poses: Var, sizes: Var) -> list[tuple[Var, np.ndarray]]:
        """What the program of a kind reads."""
        sides, lengths = self.sides(kind.members, POSE), self.size_tables(kind)
        return [(poses, sides[0]), (poses, sides[1]), (sizes, lengths[0]), (sizes, lengths[1])]

    def near(self, b: ProgramBuilder, kind: Kind, poses: Var, boxes: Var, reach: Var) -> Var:
        """Flags of the pairs of a kind whose bounding boxes are within reach."""
        n = len(kind.members)
        posed, boxed = self.sides(kind.members, POSE), self.sides(kind.members, BOX)
        tables = [(poses, posed[0]), (poses, posed[1]), (boxes, boxed[0]), (boxes, boxed[1])]
        return b.map(_within(), [*tables, (reach, np.zeros((n, 1), int))], [None])[0]

    def all_places(self, b: ProgramBuilder, poses: Var, sizes: Var) -> Var:
        """POINT numbers of every place of every pair, none left out, in the order of the pairs."""
        found = [b.map(kind.program, self.geometry(b, kind, poses, sizes), [None])[0] for kind in self.kinds]
        width = self.together * POINT
        rows = self.made_at[:, None] * width + np.arange(width)
        x = SX.sym("x", width)
        same = as_program(ca.Function("same", [x], [x]))
        return b.map(same, [(b.concat(*found) if found[1:] else found[0], rows)], [None])[0]


def _within() -> ca.Function:
    x, y, s, t, reach = SX.sym("x", POSE), SX.sym("y", POSE), SX.sym("s", BOX), SX.sym("t", BOX), SX.sym("reach")
    return ca.Function("within", [x, y, s, t, reach], [boxes_apart(x, y, s, t) < reach])
