"""Pairs of shapes and their contact points by kind: what a kind has in common is code, everything else is numbers that it reads.

Pairs with shapes of the same kinds share the program that finds their contact points (`Geometry`); contact points of the same
dimension, softness and margin share the law of their forces (`Law`), whatever the shapes are. Contact points are numbered kind of
pair after kind of pair.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import bounding_box
from costate.collision.contact_point import pose
from costate.collision.narrow import POINT, POSE, pair_key, pair_program
from costate.collision.pairs import ContactPoint, Placed, by_program
from costate.collision.shapes import Solid, resized, size_symbols
from costate.core.fork import cached_property
from costate.kernel.ir.program import Program
from costate.kernel.tracing import body_program
from costate.sim.contact.detect import Contact
from costate.sim.contact.newton.pairwise.law import Law
from costate.sim.contact.newton.points import points
from costate.sim.contact.newton.rows import contact_friction
from costate.sim.contact.newton.softness import Soft, Softnesses
from costate.sim.contact.newton.weights import inverse_weights
from costate.sim.contact.pair_kinds import Pair, pose_numbers, starts
from costate.sim.setup import Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton

NOWHERE = ContactPoint(SX(0), SX.zeros(3), SX.zeros(3))


@dataclass(frozen=True, eq=False)
class Geometry:
    """All pairs with shapes of the same kinds."""

    program: Program
    """Program (pose of a, pose of b, sizes of a, sizes of b) -> `width` numbers for each contact point."""
    solids: tuple[Solid, Solid]
    """Solids of one of the pairs."""
    width: int
    """Numbers of a contact point: POINT, and a direction near to the first axis of friction where it has one."""
    members: tuple[int, ...]
    """Numbers of the pairs, in the list of all pairs."""

    @property
    def points(self) -> int:
        """Number of contact points of one pair."""
        return self.program.out_sizes[0] // self.width

    @property
    def size(self) -> int:
        """Numbers of the contact points of all pairs."""
        return len(self.members) * self.program.out_sizes[0]


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

    # --- kinds ----------------------------------------------------------------------------------------------------

    @cached_property
    def geometries(self) -> list[Geometry]:
        groups: dict[Hashable, list[int]] = {}
        solids = [(self.placed[i].solid, self.placed[j].solid) for i, j in self.pairs]
        for n, pair in enumerate(solids):
            groups.setdefault(pair_key(*pair), []).append(n)
        found = []
        for members in groups.values():
            pair = solids[members[0]]
            program, width = (pair_program(*pair), POINT) if by_program(*pair) else _formula(*pair)
            found.append(Geometry(program, pair, width, tuple(members)))
        return found

    @cached_property
    def point_pair(self) -> np.ndarray:
        """Pair of every contact point."""
        return np.concatenate([np.repeat(g.members, g.points) for g in self.geometries]).astype(int)

    @cached_property
    def point_at(self) -> np.ndarray:
        """First number of every contact point among those of all."""
        widths = np.concatenate([np.full(len(g.members) * g.points, g.width) for g in self.geometries]).astype(int)
        return np.cumsum(widths) - widths

    @cached_property
    def laws(self) -> list[Law]:
        groups: dict[Hashable, list[int]] = {}
        widths = np.concatenate([np.full(len(g.members) * g.points, g.width) for g in self.geometries])
        for k, n in enumerate(self.point_pair):
            surface, soft = self.contacts[n].surface, self.softnesses[n]
            assert surface is not None
            told = "tuned" if soft.is_tuned else (soft.solref, soft.solimp)
            key = (surface.condim, surface.margin, soft.is_time, told, int(widths[k]))
            groups.setdefault(key, []).append(k)
        found = []
        for members in groups.values():
            n = self.point_pair[members[0]]
            surface, width, dt = self.contacts[n].surface, int(widths[members[0]]), self.symbols.setup.dt
            assert surface is not None
            given = (width, surface.condim, surface.margin, self.softnesses[n], tuple(members))
            found.append(Law(self.options, dt, *given))
        return found

    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of every contact point in the order of the pairs, and that of its first row."""
        dims = np.zeros(len(self.point_pair), int)
        for law in self.laws:
            dims[list(law.members)] = law.dim
        order = np.argsort(self.point_pair, kind="stable")
        place, first = np.zeros_like(dims), np.zeros_like(dims)
        place[order], first[order] = np.arange(len(order)), np.cumsum(dims[order]) - dims[order]
        return place, first

    # --- numbers --------------------------------------------------------------------------------------------------

    def shape_numbers(self) -> list[SX]:
        """Return the poses of all shapes, their sizes, and their bounding boxes."""
        placed = self.placed.values()
        parts = [pose_numbers(p) for p in placed], [size_symbols(p.solid) for p in placed]
        return [ca.densify(ca.vertcat(*x)) for x in (*parts, [bounding_box(p.solid) for p in placed])]

    def own_numbers(self) -> SX:
        """Return friction coefficients, inverse mass and, where it is an input, softness of every pair."""
        return ca.densify(ca.vertcat(*(x for own in self._own for x in own)))

    @cached_property
    def _own(self) -> list[list[SX]]:
        links = sorted({x for t in self.contacts for x in (t.link_a, t.link_b)})
        weights, found = inverse_weights(self.symbols.setup.scene.model, links).links, []
        for t, soft in zip(self.contacts, self.softnesses, strict=True):
            own = [*contact_friction(t), SX(weights[t.link_a][0] + weights[t.link_b][0])]
            found.append(own + ([SX(x) for x in (*soft.solref, *soft.solimp)] if soft.is_tuned else []))
        return found

    @cached_property
    def own_at(self) -> np.ndarray:
        """First one of every pair's own numbers."""
        sizes = np.array([len(own) for own in self._own])
        return np.cumsum(sizes) - sizes

    @cached_property
    def margins(self) -> list[float]:
        """Margin of every pair [m]."""
        return [t.surface.margin for t in self.contacts if t.surface]

    def places(self, width: int) -> dict[int, int]:
        """Return the first element of every shape in a vector with `width` numbers per shape."""
        return {k: n * width for n, k in enumerate(self.placed)}

    @cached_property
    def size_at(self) -> dict[int, int]:
        """First size of every shape."""
        return starts(self.placed, (size_symbols(p.solid).numel() for p in self.placed.values()))


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
