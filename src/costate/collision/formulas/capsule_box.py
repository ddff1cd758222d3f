"""A capsule and a box: the ends of the capsule, the corners of the box, and edges that cross.

Points against faces do not see the middle of the capsule on an edge of the box. For the axis of the capsule and an edge of the box
the normal is their cross product. They touch where their closest points lie on both, and where no face keeps the solids further
apart (separating axes: Gottschalk, Lin and Manocha, 1996).
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed, points_against
from costate.collision.shapes.box import Box
from costate.collision.shapes.capsule import Capsule
from costate.collision.shapes.rays import FAR
from costate.collision.shapes.solid import length

PARALLEL = 1e-6
"""Squared sine of the angle below which two edges are parallel: their ends, which are points, touch instead."""
ON_EDGE = 1e-9
"""Distance beyond the end of an edge at which its closest point still counts, relative to the edge."""
FACE_FIRST = 1e-6
"""Tolerance of rounding by which a face goes before edges [m]."""


def capsule_box(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return both ends against the box, the nearest corner against the capsule, and the nearest edge against its axis."""
    corner = _nearest([c.flipped() for c in points_against(b, a)])
    return [*points_against(a, b), corner, _edges(a, b)]


def _nearest(found: list[ContactPoint]) -> ContactPoint:
    """Return the contact point with the smallest gap."""
    best = found[0]
    for c in found[1:]:
        nearer = c.gap < best.gap
        pairs = ((c.gap, best.gap), (c.point, best.point), (c.normal, best.normal))
        best = ContactPoint(*(ca.if_else(nearer, x, y) for x, y in pairs))
    return best


def _edges(a: Placed, b: Placed) -> ContactPoint:
    """Return the contact of the axis with the edge that is nearest; its gap is FAR if none meets the axis."""
    least = _face_separation(a, b) - FACE_FIRST
    gap, point, normal = SX(-FAR), SX.zeros(3), SX([0, 0, 1])
    for k in range(3):
        found, meets = _edge(a, b, k)
        better = ca.logic_and(ca.logic_and(meets, found.gap > least), found.gap > gap)
        pairs = ((found.gap, gap), (found.point, point), (found.normal, normal))
        gap, point, normal = (ca.if_else(better, x, y) for x, y in pairs)
    return ContactPoint(ca.if_else(gap > -FAR, gap, FAR), point, normal)


def _face_separation(a: Placed, b: Placed) -> SX:
    """Return the largest distance along the normals of the box's faces; negative if no face separates the two."""
    assert isinstance(a.solid, Capsule) and isinstance(b.solid, Box)
    between, best = a.position - b.position, SX(-FAR)
    for k in range(3):
        n = b.rotation[:, k]
        reach = a.solid.length / 2 * ca.fabs(ca.dot(n, a.rotation[:, 2])) + a.solid.radius
        best = ca.fmax(best, ca.fabs(ca.dot(between, n)) - reach - b.solid.size[k] / 2)
    return best


def _edge(a: Placed, b: Placed, k: int) -> tuple[ContactPoint, SX]:
    """Return the contact of the axis with the edge along the box's axis k that stands out most, and whether their closest points
    are on both."""
    assert isinstance(a.solid, Capsule) and isinstance(b.solid, Box)
    u, w = a.rotation[:, 2], b.rotation[:, k]
    across = ca.cross(u, w)
    sine2 = ca.dot(across, across)
    skew = sine2 > PARALLEL
    across = ca.if_else(skew, across, SX([0, 0, 1]))
    n = across / length(across)
    n = ca.if_else(ca.dot(n, a.position - b.position) < 0, -n, n)
    q = b.position
    for j in {0, 1, 2} - {k}:
        q = q + ca.if_else(ca.dot(n, b.rotation[:, j]) >= 0, 1, -1) * (b.solid.size[j] / 2) * b.rotation[:, j]
    between, cosine = a.position - q, ca.dot(u, w)
    along_u, along_w = ca.dot(u, between), ca.dot(w, between)
    safe = ca.if_else(skew, sine2, 1)
    s = (cosine * along_w - along_u) / safe
    t = (along_w - cosine * along_u) / safe
    halves = (a.solid.length / 2, b.solid.size[k] / 2)
    on_a, on_b = (ca.fabs(x) <= half * (1 + ON_EDGE) for x, half in zip((s, t), halves, strict=True))
    gap = ca.dot(n, between) - a.solid.radius
    return ContactPoint(gap, q + t * w + n * (gap / 2), n), ca.logic_and(skew, ca.logic_and(on_a, on_b))
