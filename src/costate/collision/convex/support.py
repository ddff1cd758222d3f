"""What contact needs to know of a convex solid: how far it reaches, and the face, edge or point it shows in a direction.

A rounded solid is a core (a point, a segment) and a radius around it. Everything is in the solid's own frame. Each kind of solid is
a row of FEATURES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.hull import Hull
from costate.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, Number, Solid, Sphere, length

SNAP = 1e-3
"""Sine of the angle within which a direction is tried as the normal of a face, or as normal to an edge."""
RIM = 8
"""Corners of the polygon that stands for a round face."""
ON_FACE = 1e-6
"""How far below a face a corner still belongs to it [m]."""


@dataclass(frozen=True)
class Features:
    """How a kind of solid is seen by contact. Directions need not have length one; points are (3,)."""

    support: Callable[[Solid, SX], SX]
    """The point of the core that is furthest in a direction."""
    face: Callable[[Solid, SX], list[SX]]
    """Corners of the face, edge or point of the core that is turned to a direction, in order around it."""
    flats: Callable[[Solid, SX], tuple[SX, SX, SX]]
    """Two directions within the face, and one along the edge, whose normal a unit direction nearly is; zeros where none is."""
    normals: Callable[[Solid, SX], list[SX]]
    """Outward normals of flat faces through which a point may leave first; of solids with few."""
    edges: tuple[int, ...] = ()
    """Axes of the solid that straight edges lie along, where these are few."""


def radius(solid: Solid) -> Number:
    """Of what surrounds the core [m]."""
    return solid.radius if isinstance(solid, Sphere | Capsule) else 0.0


def features(solid: Solid) -> Features:
    return FEATURES[type(solid)]


def is_convex(solid: Solid) -> bool:
    """Whether contact knows the features of a solid."""
    return type(solid) in FEATURES


def _sign(x: SX) -> SX:
    return ca.if_else(x < 0, -1, 1)


def _none() -> tuple[SX, SX, SX]:
    return SX.zeros(3), SX.zeros(3), SX.zeros(3)


# --- round ------------------------------------------------------------------------------------------------------------


def _sphere_support(s: Solid, d: SX) -> SX:
    return SX.zeros(3)


def _ellipsoid_support(s: Solid, d: SX) -> SX:
    assert isinstance(s, Ellipsoid)
    stretched = s.semi * d
    return s.semi * stretched / length(stretched)


def _capsule_ends(s: Solid) -> list[SX]:
    assert isinstance(s, Capsule)
    return [ca.vertcat(0, 0, end * s.length / 2) for end in (-1, 1)]


def _capsule_support(s: Solid, d: SX) -> SX:
    assert isinstance(s, Capsule)
    return ca.vertcat(0, 0, _sign(d[2]) * s.length / 2)


def _axis_flat(s: Solid, n: SX) -> tuple[SX, SX, SX]:
    return SX.zeros(3), SX.zeros(3), ca.vertcat(0, 0, ca.fabs(n[2]) < SNAP)


# --- cylinder ---------------------------------------------------------------------------------------------------------


def _cylinder_support(s: Solid, d: SX) -> SX:
    assert isinstance(s, Cylinder)
    return ca.vertcat(s.radius * d[:2] / length(d[:2]), _sign(d[2]) * s.length / 2)


def _cylinder_face(s: Solid, d: SX) -> list[SX]:
    """An end, as a polygon with a corner at its furthest point; or the line of the side, each end of it several times."""
    assert isinstance(s, Cylinder)
    tilt = d[:2] + 1e-9 * ca.vertcat(1, 0)  # along the axis any corner will do
    u = tilt / length(tilt)
    across = ca.vertcat(-u[1], u[0])
    flat = d[2] ** 2 > ca.dot(d[:2], d[:2])
    points = []
    for k in range(RIM):
        angle = 2 * np.pi * k / RIM
        end = ca.vertcat(s.radius * (np.cos(angle) * u + np.sin(angle) * across), _sign(d[2]) * s.length / 2)
        side = ca.vertcat(s.radius * u, (-1 if k < RIM // 2 else 1) * s.length / 2)
        points.append(ca.if_else(flat, end, side))
    return points


def _cylinder_flats(s: Solid, n: SX) -> tuple[SX, SX, SX]:
    on_end = ca.dot(n[:2], n[:2]) < SNAP**2
    return ca.vertcat(on_end, 0, 0), ca.vertcat(0, on_end, 0), _axis_flat(s, n)[2]


def _cylinder_normals(s: Solid, p: SX) -> list[SX]:
    """Both ends, and the side next to the point."""
    side = p[:2] + 1e-9 * ca.vertcat(1, 0)
    return [SX([0, 0, -1]), SX([0, 0, 1]), ca.vertcat(side / length(side), 0)]


# --- flat -------------------------------------------------------------------------------------------------------------


def _box_support(s: Solid, d: SX) -> SX:
    assert isinstance(s, Box)
    return ca.if_else(d < 0, -1, 1) * s.size / 2


def _box_face(s: Solid, d: SX) -> list[SX]:
    """Of the axis with the largest component; ties go to the first."""
    assert isinstance(s, Box)
    h, a = s.size / 2, ca.fabs(d)
    on_x = ca.logic_and(a[0] >= a[1], a[0] >= a[2])
    on_y = ca.logic_and(ca.logic_not(on_x), a[1] >= a[2])
    points = []
    for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        x = ca.vertcat(_sign(d[0]) * h[0], i * h[1], j * h[2])
        y = ca.vertcat(i * h[0], _sign(d[1]) * h[1], j * h[2])
        z = ca.vertcat(i * h[0], j * h[1], _sign(d[2]) * h[2])
        points.append(ca.if_else(on_x, x, ca.if_else(on_y, y, z)))
    return points


def _box_flats(s: Solid, n: SX) -> tuple[SX, SX, SX]:
    return _polygon_flats(_box_face(s, n), n)


def _box_normals(s: Solid, p: SX) -> list[SX]:
    return [SX(side * np.eye(3)[k]) for k in range(3) for side in (-1, 1)]


def _hull_support(s: Solid, d: SX) -> SX:
    assert isinstance(s, Hull)
    return furthest(s.corners, d)


def furthest(points: list[SX], d: SX) -> SX:
    """The point furthest in a direction."""
    best, most = points[0], ca.dot(points[0], d)
    for p in points[1:]:
        reach = ca.dot(p, d)
        best, most = ca.if_else(reach > most, p, best), ca.fmax(reach, most)
    return best


def _hull_face(s: Solid, d: SX) -> list[SX]:
    """Of the faces around the corner that is furthest, the one turned most to the direction."""
    assert isinstance(s, Hull)
    tip, unit = furthest(s.corners, d), d / length(d)
    best, most = ca.vertcat(*s.polygons[0]), SX(-2)
    for polygon, normal in zip(s.polygons, s.normals, strict=True):
        touches = ca.dot(normal, tip - polygon[0]) > -ON_FACE
        turned = ca.if_else(touches, ca.dot(normal, unit), -2)
        best, most = ca.if_else(turned > most, ca.vertcat(*polygon), best), ca.fmax(turned, most)
    return [best[3 * k : 3 * k + 3] for k in range(len(s.polygons[0]))]


def _hull_flats(s: Solid, n: SX) -> tuple[SX, SX, SX]:
    """Of all faces the one whose normal is nearly n; of all edges met by directions near n, the one most nearly normal to it."""
    assert isinstance(s, Hull)
    first, second, most = SX.zeros(3), SX.zeros(3), SX(1 - SNAP**2 / 2)
    for polygon, normal in zip(s.polygons, s.normals, strict=True):
        along = ca.dot(normal, n)
        sides = [q - p for p, q in pairwise(polygon[:3])]
        first = ca.if_else(along > most, sides[0], first)
        second = ca.if_else(along > most, sides[1], second)
        most = ca.fmax(along, most)
    edge, least = SX.zeros(3), SX(SNAP)
    for row in s.edges:
        beside = ca.fmax(ca.dot(n, row[6:9]), ca.dot(n, row[9:]))
        off = ca.if_else(beside < SNAP, ca.fabs(ca.dot(n, row[3:6])), 1)
        edge, least = ca.if_else(off < least, row[3:6], edge), ca.fmin(off, least)
    return _unit_or_zero(first), _unit_or_zero(second), edge


def _unit_or_zero(v: SX) -> SX:
    square = ca.dot(v, v)
    return v / ca.sqrt(ca.if_else(square > 0, square, 1))


def _polygon_flats(points: list[SX], n: SX) -> tuple[SX, SX, SX]:
    """The first two edges if n is nearly normal to the polygon, and its edge that is most nearly normal to n, if one is."""
    edges = [b - a for a, b in zip(points, [*points[1:], points[0]], strict=True)]
    squares = [ca.dot(e, e) for e in edges]
    units = [e / ca.sqrt(ca.if_else(q > 0, q, 1)) for e, q in zip(edges, squares, strict=True)]
    first, second = units[0], units[1]
    normal = ca.cross(first, second)
    normal = normal / length(normal)
    along = ca.dot(normal, n)
    on_face = 1 - along * along < SNAP**2
    edge, least = SX.zeros(3), SX(SNAP)
    for e, q in zip(units, squares, strict=True):
        off = ca.if_else(q > 0, ca.fabs(ca.dot(e, n)), 1)
        edge, least = ca.if_else(off < least, e, edge), ca.fmin(off, least)
    return ca.if_else(on_face, first, 0), ca.if_else(on_face, second, 0), edge


FEATURES: dict[type[Solid], Features] = {
    Sphere: Features(_sphere_support, lambda s, d: [SX.zeros(3)], lambda s, n: _none(), lambda s, p: []),
    Capsule: Features(_capsule_support, lambda s, d: _capsule_ends(s), _axis_flat, lambda s, p: [], (2,)),
    Ellipsoid: Features(
        _ellipsoid_support, lambda s, d: [_ellipsoid_support(s, d)], lambda s, n: _none(), lambda s, p: []
    ),
    Cylinder: Features(_cylinder_support, _cylinder_face, _cylinder_flats, _cylinder_normals, (2,)),
    Box: Features(_box_support, _box_face, _box_flats, _box_normals, (0, 1, 2)),
    Hull: Features(_hull_support, _hull_face, _hull_flats, lambda s, p: []),
}
