"""Edges against edges: the contact of capsules and boxes that points against faces do not see.

For an edge of a and one of b the normal is their cross product; the two edges that stand out most along it are the ones that
can touch. They do where their closest points lie on both, and where no face keeps the solids further apart (separating axes:
Gottschalk, Lin and Manocha, 1996).
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.shapes import FAR, Box, Capsule, Cylinder, Number, Solid, length

PARALLEL = 1e-6
"""Squared sine of the angle below which two edges are parallel: their ends, which are points, touch instead."""
ON_EDGE = 1e-9
"""How far beyond the end of an edge its closest point may lie, relative to the edge."""
FACE_FIRST = 1e-6
"""How much further apart than along a face's normal solids must be along an edges' normal [m], tolerance of rounding."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A solid with edges, at a pose in the world."""

    solid: Solid
    rotation: SX
    position: SX

    def edges(self) -> list[int]:
        """Axes of the solid that edges lie along."""
        return [0, 1, 2] if isinstance(self.solid, Box) else [2]

    def faces(self) -> list[int]:
        """Axes of the solid that are normals of flat faces."""
        return [0, 1, 2] if isinstance(self.solid, Box) else [2] if isinstance(self.solid, Cylinder) else []

    def axis(self, k: int) -> SX:
        return self.rotation[:, k]

    def half(self, k: int) -> Number:
        """Half an edge's length [m]."""
        solid = self.solid
        if isinstance(solid, Box):
            return solid.size[k] / 2
        assert isinstance(solid, Capsule | Cylinder)
        return solid.length / 2

    @property
    def radius(self) -> Number:
        """Of what surrounds the edge [m]."""
        return self.solid.radius if isinstance(self.solid, Capsule | Cylinder) else 0.0

    def middle(self, k: int, direction: SX) -> SX:
        """Middle of the edge along axis k that stands out most in a direction."""
        p = self.position
        if isinstance(self.solid, Box):
            for j in {0, 1, 2} - {k}:
                side = ca.if_else(ca.dot(direction, self.axis(j)) >= 0, 1, -1)
                p = p + side * self.half(j) * self.axis(j)
        return p

    def extent(self, direction: SX) -> SX:
        """How far the solid reaches from its centre in a unit direction [m]."""
        along = [ca.fabs(ca.dot(direction, self.axis(k))) for k in range(3)]
        if isinstance(self.solid, Box):
            return sum((self.half(k) * along[k] for k in range(3)), SX(0))
        reach = self.half(2) * along[2]
        if isinstance(self.solid, Capsule):
            return reach + self.radius
        return reach + self.radius * ca.sqrt(ca.fmax(1 - along[2] ** 2, 1e-24))


def face_separation(a: Frame, b: Frame) -> SX:
    """Largest distance along the normals of all flat faces; negative if no face separates the two."""
    between = a.position - b.position
    best = SX(-FAR)
    for n in [a.axis(k) for k in a.faces()] + [b.axis(k) for k in b.faces()]:
        best = ca.fmax(best, ca.fabs(ca.dot(between, n)) - a.extent(n) - b.extent(n))
    return best


def edge_contact(a: Frame, b: Frame) -> tuple[SX, SX, SX]:
    """(gap, point, normal from b to a) of the edges that touch or are nearest; the gap is FAR if no edges are."""
    least = face_separation(a, b) - FACE_FIRST
    gap, point, normal = SX(-FAR), SX.zeros(3), SX([0, 0, 1])
    for i in a.edges():
        for j in b.edges():
            g, p, n, meets = _pair(a, i, b, j)
            better = ca.logic_and(ca.logic_and(meets, g > least), g > gap)
            gap, point, normal = (ca.if_else(better, x, y) for x, y in ((g, gap), (p, point), (n, normal)))
    return ca.if_else(gap > -FAR, gap, FAR), point, normal


def _pair(a: Frame, i: int, b: Frame, j: int) -> tuple[SX, SX, SX, SX]:
    """Gap, point, normal of one pair of edges, and whether their closest points are on both."""
    u, w = a.axis(i), b.axis(j)
    across = ca.cross(u, w)
    sine2 = ca.dot(across, across)
    skew = sine2 > PARALLEL
    across = ca.if_else(skew, across, SX([0, 0, 1]))
    n = across / length(across)
    n = ca.if_else(ca.dot(n, a.position - b.position) < 0, -n, n)
    p, q = a.middle(i, -n), b.middle(j, n)
    between, cosine = p - q, ca.dot(u, w)
    along_u, along_w = ca.dot(u, between), ca.dot(w, between)
    safe = ca.if_else(skew, sine2, 1)
    s = (cosine * along_w - along_u) / safe
    t = (along_w - cosine * along_u) / safe
    on_a, on_b = ca.fabs(s) <= a.half(i) * (1 + ON_EDGE), ca.fabs(t) <= b.half(j) * (1 + ON_EDGE)
    gap = ca.dot(n, between) - a.radius - b.radius
    point = q + t * w + n * (b.radius + gap / 2)
    return gap, point, n, ca.logic_and(skew, ca.logic_and(on_a, on_b))
