"""Detection: the contact points of all pairs of shapes, as expressions of a step's symbols.

Pairs with a formula are expressions of the configuration. Pairs that need a search are programs: their contact points are symbols
of their own, and a stage of the step's program, one map per kind of pair, gives them their values. Searched pairs that are far
apart are left out by their bounding spheres.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import BOUND, bound, pruned
from costate.collision.narrow import POINT, POSE, pair_program, point_count
from costate.collision.pairs import ContactPoint, Placed, by_program
from costate.collision.shapes import size_symbols
from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var
from costate.model.surface import Surface
from costate.physics.kinematics import body_poses, link_pose
from costate.sim.contact.pair_kinds import Kind, Pair, ShapeTable, pair_kinds, pose_numbers, side_tables, starts

if TYPE_CHECKING:
    from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class Contact:
    """A contact point between two links, with its friction and surface."""

    link_a: str
    link_b: str
    shapes: tuple[str, str]
    geometry: ContactPoint
    friction: SX
    """Coefficient of sliding friction."""
    surface: Surface | None = None
    """Softness and friction of the pair, for contact models that use MuJoCo's surfaces."""
    along: SX | None = None
    """Direction near to the first axis of friction, for contact models that choose one."""

    @property
    def rubs(self) -> bool:
        """Return whether the contact has rows of friction."""
        return not (self.friction.is_constant() and float(self.friction) == 0.0)


class Detection:
    """The contact points of a world, from the symbols of a step."""

    def __init__(self, s: Symbols):
        self.symbols, self.scene = s, s.setup.scene

    @cached_property
    def placed(self) -> dict[int, Placed]:
        """Colliders that may touch others, at their poses in the world."""
        s = self.symbols
        bodies = body_poses(s.tree, s.q)
        links = {k: link_pose(s.tree, bodies, self.scene.colliders[k].link) for k in s.used}
        return {k: s.place(self.scene.colliders[k], links[k]) for k in s.used}

    @cached_property
    def searched(self) -> Searched | None:
        """The pairs whose contact points a program finds."""
        placed = self.placed
        pairs = [(i, j) for i, j in self.scene.pairs if by_program(placed[i].solid, placed[j].solid)]
        return Searched.of(pairs, placed) if pairs else None

    def contacts(self) -> list[Contact]:
        """Return the contacts of all pairs, in the order of the pairs."""
        s, model = self.symbols, self.symbols.setup.contact
        found = []
        for i, j in self.scene.pairs:
            a, b = self.scene.colliders[i], self.scene.colliders[j]
            near = self._points(i, j)
            if not near:
                raise ValueError(
                    f"'{a.name}' and '{b.name}' have no points to touch each other by: make one of simpler shapes, or leave the "
                    "pair out with collide="
                )
            surface = self.scene.listed.get((i, j)) or model.surface_between(a, b)
            friction = s.friction_between(i, j)
            found += [Contact(a.link, b.link, (a.name, b.name), c, friction, surface, along) for c, along in near]
        return found

    def _points(self, i: int, j: int) -> list[tuple[ContactPoint, SX | None]]:
        if self.searched is not None and (i, j) in self.searched.starts:
            return [(c, None) for c in self.searched.contact_points(i, j)]
        return self.symbols.setup.contact.contact_points(self.placed[i], self.placed[j])


@dataclass(frozen=True, eq=False)
class Searched:
    """Pairs of shapes that are programs, and symbols for their contact points."""

    pairs: tuple[Pair, ...]
    placed: Mapping[int, Placed]
    symbols: SX
    """POINT numbers for each contact point of each pair, in the order of the pairs."""

    @staticmethod
    def of(pairs: Sequence[Pair], placed: Mapping[int, Placed]) -> Searched:
        count = sum(point_count(placed[i].solid, placed[j].solid) for i, j in pairs)
        used = {k: placed[k] for pair in pairs for k in pair}
        return Searched(tuple(pairs), used, SX.sym("points", POINT * count))

    @cached_property
    def starts(self) -> dict[Pair, int]:
        """Pair -> number of its first contact point."""
        counts = [point_count(self.placed[i].solid, self.placed[j].solid) for i, j in self.pairs]
        return dict(zip(self.pairs, np.concatenate([[0], np.cumsum(counts)]).astype(int).tolist(), strict=False))

    def contact_points(self, i: int, j: int) -> list[ContactPoint]:
        """Return the contact points of one pair, as symbols."""
        found = []
        for k in range(point_count(self.placed[i].solid, self.placed[j].solid)):
            at = POINT * (self.starts[i, j] + k)
            gap, point, normal = ca.vertsplit(self.symbols[at : at + POINT], [0, 1, 4, 7])
            found.append(ContactPoint(gap, point, normal))
        return found

    def call(self, b: ProgramBuilder, s: Symbols, args: Sequence[Var], prune: bool = True) -> Var:
        """Add the stages that find the values of the symbols, from the inputs of a step."""
        records = [[pose_numbers(p), size_symbols(p.solid), ca.vertcat(*bound(p.solid))] for p in self.placed.values()]
        pose_at = starts(self.placed, (sum(x.numel() for x in record) for record in records))
        size_at = {k: at + POSE for k, at in pose_at.items()}
        sphere_at = {k: at + record[1].numel() for (k, at), record in zip(size_at.items(), records, strict=True)}
        numbers = ca.densify(ca.vertcat(*(x for record in records for x in record)))
        (shapes,) = b.call(ca.Function("placed", s.inputs, [numbers]), *args)
        table = ShapeTable(pose_at, size_at)
        kinds = pair_kinds(self.pairs, self.placed, pair_program)
        found = [self._find(b, table, kind, shapes, sphere_at if prune else None) for kind in kinds]
        whole = b.concat(*found) if found[1:] else found[0]
        order = np.concatenate([self._elements(kind) for kind in kinds])
        if np.array_equal(order, np.arange(len(order))):
            return whole
        return b.trace(lambda x: x[np.argsort(order).tolist()], whole)

    def _elements(self, kind: Kind) -> np.ndarray:
        """Return the elements of the symbols that belong to the pairs of a kind."""
        width = np.arange(POINT * kind.points)
        return np.concatenate([POINT * self.starts[self.pairs[m]] + width for m in kind.members])

    def _find(
        self, b: ProgramBuilder, table: ShapeTable, kind: Kind, shapes: Var, sphere_at: Mapping[int, int] | None
    ) -> Var:
        """Add the map over the pairs of one kind. shapes: poses, sizes and bounding spheres of all shapes."""
        pairs = [self.pairs[m] for m in kind.members]
        reads = table.reads(pairs, kind.program, shapes, shapes)
        if sphere_at is None:
            return b.map(kind.program, reads, [None])[0]
        reads += [(shapes, t) for t in side_tables(sphere_at, pairs, (BOUND, BOUND))]
        return b.map(pruned(kind.program), reads, [None])[0]
