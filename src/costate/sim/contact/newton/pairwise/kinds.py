"""Pairs of shapes by kind: everything that pairs have in common is code, everything else is numbers that they read.

Pairs of a kind have shapes of the same kinds, contacts of the same dimension, and the same softness and margin, unless these are
inputs of the step. They differ in poses and sizes, in friction coefficients and in the inverse mass of their links.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import BOX, bounding_box, boxes_apart
from costate.collision.contact_point import pose
from costate.collision.narrow import POINT, POSE, pair_key, pair_program
from costate.collision.pairs import ContactPoint, Placed, by_program
from costate.collision.shapes import Plane, Solid, resized, size_symbols
from costate.core.fork import cached_property
from costate.kernel.ir.program import Program, Var
from costate.kernel.tracing import body_program
from costate.sim.contact.detect import Contact
from costate.sim.contact.newton.points import points
from costate.sim.contact.newton.rows import contact_friction
from costate.sim.contact.newton.softness import Soft, Softnesses
from costate.sim.contact.newton.weights import inverse_weights
from costate.sim.contact.pair_kinds import Pair, Read, ShapeTable, pose_numbers, side_tables, starts
from costate.sim.setup import Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

ALONG = 3
"""Numbers of the direction near to the first axis of friction, which some contact points have."""
NOWHERE = ContactPoint(SX(0), SX.zeros(3), SX.zeros(3))


@dataclass(frozen=True, eq=False)
class Kind:
    """All pairs of one kind."""

    program: Program
    """Program (pose of a, pose of b, sizes of a, sizes of b) -> `width` numbers for each contact point."""
    solids: tuple[Solid, Solid]
    """Solids of one of the pairs."""
    width: int
    """Numbers of a contact point: POINT, and the direction along which it slides where it has one."""
    condim: int
    margin: float
    soft: Soft
    """Softness; its numbers count where they are constant."""
    tuned: bool
    """True if the softness is an input of the step, different for every pair."""
    members: tuple[int, ...]
    """Numbers of the pairs, in the list of all pairs."""

    @property
    def points(self) -> int:
        """Number of contact points of one pair."""
        return self.program.out_sizes[0] // self.width

    @property
    def own(self) -> int:
        """Numbers of a pair of its own: friction coefficients, inverse mass, softness."""
        return self.condim + (len(self.soft.solref) + len(self.soft.solimp) if self.tuned else 0)

    def law(self, own: SX) -> tuple[tuple[SX, ...], SX, Soft]:
        """Return friction coefficients, inverse mass and softness from a pair's own numbers."""
        friction, easy = tuple(ca.vertsplit(own[: self.condim])[:-1]), own[self.condim - 1]
        if not self.tuned:
            return friction, easy, self.soft
        solref, solimp = ca.vertsplit(own[self.condim :], [0, len(self.soft.solref), own.numel() - self.condim])
        return friction, easy, self.soft.given(solref, solimp)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of a world, and where their numbers are."""

    symbols: Symbols
    options: Newton

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        return self.symbols.setup.scene.pairs

    @cached_property
    def placed(self) -> dict[int, Placed]:
        """Shapes that may touch others, in the world."""
        return self.symbols.detection.placed

    @cached_property
    def contacts(self) -> list[Contact]:
        """Links, friction and surface of every pair; not where it touches."""
        s = self.symbols
        scene, found = s.setup.scene, []
        for i, j in self.pairs:
            a, b = scene.colliders[i], scene.colliders[j]
            surface = scene.listed.get((i, j)) or s.setup.contact.surface_between(a, b)
            found.append(Contact(a.link, b.link, (a.name, b.name), NOWHERE, s.friction_between(i, j), surface))
        return found

    @cached_property
    def softnesses(self) -> list[Soft]:
        every = Softnesses(self.symbols, self.options)
        return [every.of_contact(t) for t in self.contacts]

    @cached_property
    def kinds(self) -> list[Kind]:
        groups: dict[Hashable, list[int]] = {}
        for n, (t, soft) in enumerate(zip(self.contacts, self.softnesses, strict=True)):
            assert t.surface is not None
            told = "tuned" if _is_tuned(soft) else (soft.solref, soft.solimp)
            key = (pair_key(*self.solids(n)), t.surface.condim, t.surface.margin, soft.is_time, told)
            groups.setdefault(key, []).append(n)
        return [self._kind(tuple(members)) for members in groups.values()]

    def solids(self, n: int) -> tuple[Solid, Solid]:
        """Return the two solids of a pair."""
        i, j = self.pairs[n]
        return self.placed[i].solid, self.placed[j].solid

    def _kind(self, members: tuple[int, ...]) -> Kind:
        first = members[0]
        surface, soft, solids = self.contacts[first].surface, self.softnesses[first], self.solids(first)
        assert surface is not None
        program, width = (pair_program(*solids), POINT) if by_program(*solids) else _formula(*solids)
        return Kind(program, solids, width, surface.condim, surface.margin, soft, _is_tuned(soft), members)

    # --- numbers --------------------------------------------------------------------------------------------------

    def shape_numbers(self) -> SX:
        """Return pose, sizes and bounding box of every shape."""
        return ca.densify(ca.vertcat(*(x for p in self.placed.values() for x in _record(p))))

    def own_numbers(self) -> SX:
        """Return the numbers of every pair of its own, kind after kind."""
        model = self.symbols.setup.scene.model
        links = sorted({x for t in self.contacts for x in (t.link_a, t.link_b)})
        weights = inverse_weights(model, links).links
        found: list[SX] = []
        for kind in self.kinds:
            for n in kind.members:
                t, soft = self.contacts[n], self.softnesses[n]
                found += [*contact_friction(t), SX(weights[t.link_a][0] + weights[t.link_b][0])]
                found += [SX(x) for x in (*soft.solref, *soft.solimp)] if kind.tuned else []
        return ca.densify(ca.vertcat(*found))

    # --- reads ----------------------------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> ShapeTable:
        pose_at = starts(self.placed, (sum(x.numel() for x in _record(p)) for p in self.placed.values()))
        return ShapeTable(pose_at, {k: at + POSE for k, at in pose_at.items()})

    def _members(self, kind: Kind) -> list[Pair]:
        return [self.pairs[n] for n in kind.members]

    def geometry(self, kind: Kind, shapes: Var) -> list[Read]:
        """Return what the program of a kind reads."""
        return self._table.reads(self._members(kind), kind.program, shapes, shapes)

    def own(self, kind: Kind, numbers: Var) -> Read:
        """Return the read of the pairs' own numbers."""
        at = sum(k.own * len(k.members) for k in self.kinds[: self.kinds.index(kind)])
        return numbers, at + np.arange(kind.own * len(kind.members)).reshape(-1, kind.own)

    def bounds(self, kind: Kind, shapes: Var) -> list[Read]:
        """Return poses and bounding boxes of both shapes."""
        members = self._members(kind)
        ends = starts(self.placed, (sum(x.numel() for x in _record(p)) for p in self.placed.values()))
        box_at = {k: at + POSE + size_symbols(self.placed[k].solid).numel() for k, at in ends.items()}
        tables = side_tables(self._table.pose_at, members, (POSE, POSE)) + side_tables(box_at, members, (BOX, BOX))
        return [(shapes, t) for t in tables]


def near(kind: Kind, x: SX, y: SX, s: SX, t: SX) -> SX:
    """Return whether two shapes with these poses and bounding boxes may be within the margin."""
    planes = [isinstance(solid, Plane) for solid in kind.solids]
    if not any(planes):
        return boxes_apart(x, y, s, t) < kind.margin
    (above, box), ground = ((y, t), x) if planes[0] else ((x, s), y)
    (A, a), (B, b) = pose(above), pose(ground)
    return ca.dot(B[:, 2], a + A @ box[:3] - b) - ca.dot(ca.fabs(A.T @ B[:, 2]), box[3:]) < kind.margin


def _record(p: Placed) -> list[SX]:
    return [pose_numbers(p), size_symbols(p.solid), bounding_box(p.solid)]


def _is_tuned(soft: Soft) -> bool:
    return any(isinstance(x, SX) for x in (*soft.solref, *soft.solimp))


def _formula(a: Solid, b: Solid) -> tuple[Program, int]:
    """Return the formula of a pair as a program, and the numbers that it has for a contact point."""
    widths = set[int]()

    def formula(x: SX, y: SX, size_a: SX, size_b: SX) -> SX:
        found = points(Placed(resized(a, size_a), *pose(x)), Placed(resized(b, size_b), *pose(y)))
        rows = [ca.vertcat(c.gap, c.point, c.normal, SX(0, 1) if along is None else along) for c, along in found]
        widths.update(row.numel() for row in rows)
        return ca.vertcat(SX(0, 1), *rows)

    program = body_program(formula, [POSE, POSE, size_symbols(a).numel(), size_symbols(b).numel()])
    return program, max(widths, default=POINT)
