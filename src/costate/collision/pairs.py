"""Contact geometry: where two shapes may touch, how far apart they are there, and along which directions forces act.

Which points are looked at depends on the kinds of the two shapes alone. Pairs of convex solids are programs (see narrow.py),
unless a formula is at hand: those are rows of PAIRS, or spheres. Others go through points of one against the distance of the other.
All of it is differentiable, whether the shapes touch or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.convex.edges import Frame, edge_contact
from costate.collision.convex.manifold import Place, pick
from costate.collision.convex.support import features, is_convex
from costate.collision.mesh.hull import Hull
from costate.collision.orient import tangents
from costate.collision.shapes import (
    FAR,
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Plane,
    Socket,
    Solid,
    Sphere,
    is_field,
    length,
)


@dataclass(frozen=True, eq=False)
class Placed:
    """A solid at a pose in the world."""

    solid: Solid
    rotation: SX
    position: SX

    def to_world(self, p: SX) -> SX:
        return self.position + self.rotation @ p

    def to_local(self, p: SX) -> SX:
        return self.rotation.T @ (p - self.position)


@dataclass(frozen=True, eq=False)
class ContactPoint:
    """A place where two shapes may touch."""

    gap: SX
    """Distance [m], negative when they overlap."""
    point: SX
    """Midway between the surfaces, world axes (3,)."""
    normal: SX
    """Unit vector from the second shape to the first, (3,)."""

    def flipped(self) -> ContactPoint:
        return ContactPoint(self.gap, self.point, -self.normal)


def contact_points(a: Placed, b: Placed) -> list[ContactPoint]:
    """Places where a and b may touch; normals point from b to a."""
    for (kind_a, kind_b), pair in PAIRS.items():
        if isinstance(a.solid, kind_a) and isinstance(b.solid, kind_b):
            return pair(a, b)
        if isinstance(a.solid, kind_b) and isinstance(b.solid, kind_a):
            return [c.flipped() for c in pair(b, a)]
    if isinstance(b.solid, Sphere):  # one exact point instead of many
        return [c.flipped() for c in points_against(b, a)]
    if is_field(a.solid) or is_field(b.solid):
        return []
    found = points_against(a, b)
    return found if isinstance(a.solid, Sphere) else found + [c.flipped() for c in points_against(b, a)]


def by_program(a: Solid, b: Solid) -> bool:
    """Whether a pair is a program of narrow.py: convex solids, unless there is a formula."""
    kinds = {type(a), type(b)}
    if is_field(a) or is_field(b):
        return is_convex(a) or is_convex(b)
    if not (is_convex(a) and is_convex(b)):
        return False
    formula = any(kinds == set(row) for row in PAIRS)
    return not formula and not (Sphere in kinds and kinds <= {Sphere, Capsule, Box, Cylinder})


def points_against(a: Placed, b: Placed) -> list[ContactPoint]:
    """The points of a against the distance of b."""
    found = []
    for p, radius in a.solid.points():
        x = a.to_world(p)
        y = b.to_local(x)
        gap = b.solid.distance(y) - radius
        normal = b.rotation @ _some_normal(b.solid, y)
        found.append(ContactPoint(gap, x - normal * (radius + gap / 2), normal))
    return found


BESIDE = SX([1e-9, 2e-9, 3e-9])
"""Where a normal is looked for that a point in the very middle does not have [m]."""


def _some_normal(solid: Solid, p: SX) -> SX:
    """Outward unit normal; at points with several, such as a centre, one of them."""
    normal = solid.normal(p)
    if normal.is_constant():
        return normal
    return ca.if_else(ca.dot(normal, normal) > 0.5 + 1e-6, normal, solid.normal(p + BESIDE))


def _capsule_capsule(a: Placed, b: Placed) -> list[ContactPoint]:
    """Closest points of two segments (Ericson, Real-Time Collision Detection, 5.1.9), radii added."""
    assert isinstance(a.solid, Capsule) and isinstance(b.solid, Capsule)
    u, v = a.rotation[:, 2] * a.solid.length, b.rotation[:, 2] * b.solid.length
    p, q = a.position - u / 2, b.position - v / 2
    r = p - q
    uu, vv, uv, ur, vr = ca.dot(u, u), ca.dot(v, v), ca.dot(u, v), ca.dot(u, r), ca.dot(v, r)
    parallel = uu * vv - uv * uv
    s = _unit_interval((uv * vr - ur * vv) / (parallel + 1e-12 * uu * vv))
    t = _unit_interval((uv * s + vr) / vv)
    s = _unit_interval((uv * t - ur) / uu)
    x, y = p + s * u, q + t * v
    between = x - y
    distance = length(between)
    crossing = ca.dot(between, between) < 1e-20
    across = ca.cross(a.rotation[:, 2], b.rotation[:, 2])
    skew = ca.dot(across, across) > 1e-12
    beside = ca.if_else(skew, across, a.rotation[:, 0])
    normal = ca.if_else(crossing, beside / length(beside), between / distance)
    gap = distance - a.solid.radius - b.solid.radius
    return [ContactPoint(gap, y + normal * (b.solid.radius + gap / 2), normal)]


def _unit_interval(x: SX) -> SX:
    return ca.fmin(ca.fmax(x, 0), 1)


def _edges(a: Placed, b: Placed) -> ContactPoint:
    frames = (Frame(x.solid, x.rotation, x.position) for x in (a, b))
    return ContactPoint(*edge_contact(*frames))


def _nearest(found: list[ContactPoint]) -> ContactPoint:
    """The contact point with the smallest gap."""
    best = found[0]
    for c in found[1:]:
        nearer = c.gap < best.gap
        pairs = ((c.gap, best.gap), (c.point, best.point), (c.normal, best.normal))
        best = ContactPoint(*(ca.if_else(nearer, x, y) for x, y in pairs))
    return best


def _capsule_box(a: Placed, b: Placed) -> list[ContactPoint]:
    """Both ends against the box, the nearest corner against the capsule, and edges."""
    corner = _nearest([c.flipped() for c in points_against(b, a)])
    return [*points_against(a, b), corner, _edges(a, b)]


def _rims(a: Placed, toward: SX) -> list[SX]:
    """Four points of each rim, turned so that the one furthest along a direction is among them, world axes."""
    assert isinstance(a.solid, Cylinder)
    axis = a.rotation[:, 2]
    tilt = toward - ca.dot(toward, axis) * axis + 1e-9 * a.rotation[:, 0]  # along the axis: any direction will do
    down = tilt / length(tilt)
    side = ca.cross(axis, down)
    ends = [a.position + axis * (end * a.solid.length / 2) for end in (-1, 1)]
    return [end + direction * a.solid.radius for end in ends for direction in (down, side, -down, -side)]


def _cylinder_plane(a: Placed, b: Placed) -> list[ContactPoint]:
    """Four points of each rim, the lowest among them."""
    normal = b.rotation[:, 2]
    found = []
    for x in _rims(a, -normal):
        gap = ca.dot(x - b.position, normal)
        found.append(ContactPoint(gap, x - normal * gap / 2, normal))
    return found


def _ellipsoid_plane(a: Placed, b: Placed) -> list[ContactPoint]:
    """The lowest point."""
    normal = b.rotation[:, 2]
    x = a.to_world(features(a.solid).support(a.solid, -(a.rotation.T @ normal)))
    gap = ca.dot(x - b.position, normal)
    return [ContactPoint(gap, x - normal * gap / 2, normal)]


def _hull_plane(a: Placed, b: Placed) -> list[ContactPoint]:
    """The lowest corner, and three more that span the largest area with it."""
    found = []
    for p, _ in a.solid.points():
        y = b.to_local(a.to_world(p))
        found.append(Place(SX(1), ca.vertcat(y, 0)))
    normal = b.rotation[:, 2]
    kept = [(p.valid, p.at) for p in pick(found)]
    return [
        ContactPoint(ca.if_else(valid, at[2], FAR), b.to_world(ca.vertcat(at[:2], at[2] / 2)), normal)
        for valid, at in kept
    ]


SMOOTHING = 1e-6
"""Lateral offsets [m] below which a centred cylinder's direction of contact fades out."""


def _cylinder_socket(a: Placed, b: Placed) -> list[ContactPoint]:
    """A cylinder in a bore, with its lower end (local -z) going down: the rim's deepest point against the wall, the body against
    the mouth's edge, and the lower face against floor and rim of the cup. The outside of the cup is not looked at."""
    assert isinstance(a.solid, Cylinder) and isinstance(b.solid, Socket)
    cup, r = b.solid, a.solid.radius
    axis = b.rotation.T @ a.rotation[:, 2]
    low = b.to_local(a.to_world(ca.vertcat(0, 0, -a.solid.length / 2)))
    found = [_rim_in_bore(b, cup, low, axis, r), _body_at_mouth(b, cup, low, axis, r)]
    return found + _face_on_cup(b, cup, low, axis, r)


def _lateral(offset: SX) -> tuple[SX, SX]:
    """Direction and size of a lateral offset (2,); both fade out smoothly at the centre."""
    size = ca.sqrt(ca.dot(offset, offset) + SMOOTHING**2)
    return offset / size, size - SMOOTHING


def _rim_in_bore(b: Placed, cup: Socket, low: SX, axis: SX, r) -> ContactPoint:
    """Deepest point of the lower rim along its lateral offset. Only inside of the bore."""
    u, offset = _lateral(low[:2])
    along = u[0] * axis[0] + u[1] * axis[1]
    reach = r * ca.sqrt(1 - along**2 + 1e-12)
    z = low[2] + r * along * axis[2] / ca.sqrt(1 - along**2 + 1e-12) * -1
    inside = ca.logic_and(z < 0, offset < cup.bore)
    gap = ca.if_else(inside, cup.bore - offset - reach, FAR)
    point = ca.vertcat(u * (offset + reach), z)
    return ContactPoint(gap, b.to_world(point), b.rotation @ ca.vertcat(-u, 0))


def _body_at_mouth(b: Placed, cup: Socket, low: SX, axis: SX, r) -> ContactPoint:
    """The side of the cylinder against the edge of the mouth, where its axis passes the mouth."""
    t = -low[2] / axis[2]
    at = low[:2] + t * axis[:2]
    u, offset = _lateral(at)
    reach = r / axis[2]
    inside = ca.logic_and(low[2] < 0, offset < cup.bore)
    gap = ca.if_else(inside, cup.bore - offset - reach, FAR)
    point = ca.vertcat(u * cup.bore, 0)
    return ContactPoint(gap, b.to_world(point), b.rotation @ ca.vertcat(-u, 0))


def _face_on_cup(b: Placed, cup: Socket, low: SX, axis: SX, r) -> list[ContactPoint]:
    """Four points of the lower rim against the floor of the bore, or against the cup's upper face where they are outside of the
    bore while the cylinder has not gone in."""
    x = ca.vertcat(1 - axis[0] ** 2, -axis[0] * axis[1], -axis[0] * axis[2])
    x = x / length(x)
    y = ca.cross(axis, x)
    found = []
    for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        p = low + r * (c * x + s * y)
        lateral = ca.sqrt(p[0] ** 2 + p[1] ** 2 + SMOOTHING**2)
        on_rim = ca.logic_and(lateral > cup.bore, p[2] > -cup.depth / 4)
        gap = ca.if_else(on_rim, p[2], p[2] + cup.depth)
        gap = ca.if_else(lateral < cup.radius, gap, FAR)
        found.append(ContactPoint(gap, b.to_world(p), b.rotation[:, 2]))
    return found


PAIRS: dict[tuple[type[Solid], type[Solid]], Callable[[Placed, Placed], list[ContactPoint]]] = {
    (Capsule, Capsule): _capsule_capsule,
    (Capsule, Box): _capsule_box,
    (Cylinder, Plane): _cylinder_plane,
    (Cylinder, Socket): _cylinder_socket,
    (Ellipsoid, Plane): _ellipsoid_plane,
    (Hull, Plane): _hull_plane,
}
"""Pairs with a method of their own."""


__all__ = ["ContactPoint", "Placed", "by_program", "contact_points", "tangents"]
