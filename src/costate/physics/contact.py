"""Contact geometry: where two shapes may touch, how far apart they are there, and along which directions forces act.

Which points are looked at depends on the kinds of the two shapes alone; every pair of kinds is a row of PAIRS, others go through
points of one against the distance of the other. All of it is differentiable, whether the shapes touch or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.physics.edges import Frame, edge_contact
from costate.physics.shapes import FAR, Box, Capsule, Cylinder, Plane, Socket, Solid, Sphere, length


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
class Candidate:
    """A place where two shapes may touch."""

    gap: SX
    """Distance [m], negative when they overlap."""
    point: SX
    """Midway between the surfaces, world axes (3,)."""
    normal: SX
    """Unit vector from the second shape to the first, (3,)."""

    def flipped(self) -> Candidate:
        return Candidate(self.gap, self.point, -self.normal)


def candidates(a: Placed, b: Placed) -> list[Candidate]:
    """Places where a and b may touch; normals point from b to a."""
    for (kind_a, kind_b), pair in PAIRS.items():
        if isinstance(a.solid, kind_a) and isinstance(b.solid, kind_b):
            return pair(a, b)
        if isinstance(a.solid, kind_b) and isinstance(b.solid, kind_a):
            return [c.flipped() for c in pair(b, a)]
    if isinstance(b.solid, Sphere):  # one exact point instead of many
        return [c.flipped() for c in points_against(b, a)]
    found = points_against(a, b)
    return found if isinstance(a.solid, Sphere) else found + [c.flipped() for c in points_against(b, a)]


def points_against(a: Placed, b: Placed) -> list[Candidate]:
    """The points of a against the distance of b."""
    found = []
    for p, radius in a.solid.points():
        x = a.to_world(p)
        y = b.to_local(x)
        gap = b.solid.distance(y) - radius
        normal = b.rotation @ b.solid.normal(y)
        found.append(Candidate(gap, x - normal * (radius + gap / 2), normal))
    return found


def _capsule_capsule(a: Placed, b: Placed) -> list[Candidate]:
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
    normal = between / distance
    gap = distance - a.solid.radius - b.solid.radius
    return [Candidate(gap, y + normal * (b.solid.radius + gap / 2), normal)]


def _unit_interval(x: SX) -> SX:
    return ca.fmin(ca.fmax(x, 0), 1)


def _edges(a: Placed, b: Placed) -> Candidate:
    frames = (Frame(x.solid, x.rotation, x.position) for x in (a, b))
    return Candidate(*edge_contact(*frames))


def _nearest(found: list[Candidate]) -> Candidate:
    """The candidate with the smallest gap."""
    best = found[0]
    for c in found[1:]:
        nearer = c.gap < best.gap
        pairs = ((c.gap, best.gap), (c.point, best.point), (c.normal, best.normal))
        best = Candidate(*(ca.if_else(nearer, x, y) for x, y in pairs))
    return best


def _capsule_box(a: Placed, b: Placed) -> list[Candidate]:
    """Both ends against the box, the nearest corner against the capsule, and edges."""
    corner = _nearest([c.flipped() for c in points_against(b, a)])
    return [*points_against(a, b), corner, _edges(a, b)]


def _box_box(a: Placed, b: Placed) -> list[Candidate]:
    """Corners of each against a face of the other, and edges."""
    return [*_corners_on_face(a, b), *(c.flipped() for c in _corners_on_face(b, a)), _edges(a, b)]


BESIDE_FACE = 1e-6
"""How far beside a face a corner is still above it [m]: boxes of the same size can be stacked."""


def _corners_on_face(a: Placed, b: Placed) -> list[Candidate]:
    """Corners of a against that face of b along which the two are furthest apart. All corners share it, so that one which is near
    another face too is not pushed out sideways. Corners beside the face have their plain distance."""
    assert isinstance(b.solid, Box)
    fa, fb = Frame(a.solid, a.rotation, a.position), Frame(b.solid, b.rotation, b.position)
    middle = b.to_local(a.position)
    apart = [ca.fabs(middle[k]) - fb.half(k) - fa.extent(fb.axis(k)) for k in range(3)]
    is_best = [ca.logic_and(apart[k] >= apart[(k + 1) % 3], apart[k] > apart[(k + 2) % 3]) for k in range(2)]
    chosen = ca.vertcat(is_best[0], ca.if_else(is_best[0], 0, is_best[1]), 0)
    chosen[2] = 1 - chosen[0] - chosen[1]
    facing = b.rotation @ (chosen * ca.if_else(middle < 0, -1, 1))
    found = []
    for p, _ in a.solid.points():
        x = a.to_world(p)
        y = b.to_local(x)
        out = ca.fabs(y) - b.solid.size / 2
        beside = ca.mmax(ca.if_else(chosen > 0, -1, out)) > BESIDE_FACE
        gap = ca.if_else(beside, b.solid.distance(y), ca.dot(facing, x - b.position) - ca.dot(chosen, b.solid.size) / 2)
        normal = ca.if_else(beside, b.rotation @ b.solid.normal(y), facing)
        found.append(Candidate(gap, x - normal * gap / 2, normal))
    return found


def _rims(a: Placed, toward: SX) -> list[SX]:
    """Four points of each rim, turned so that the one furthest along a direction is among them, world axes."""
    assert isinstance(a.solid, Cylinder)
    axis = a.rotation[:, 2]
    tilt = toward - ca.dot(toward, axis) * axis + 1e-9 * a.rotation[:, 0]  # along the axis: any direction will do
    down = tilt / length(tilt)
    side = ca.cross(axis, down)
    ends = [a.position + axis * (end * a.solid.length / 2) for end in (-1, 1)]
    return [end + direction * a.solid.radius for end in ends for direction in (down, side, -down, -side)]


def _cylinder_plane(a: Placed, b: Placed) -> list[Candidate]:
    """Four points of each rim, the lowest among them."""
    normal = b.rotation[:, 2]
    found = []
    for x in _rims(a, -normal):
        gap = ca.dot(x - b.position, normal)
        found.append(Candidate(gap, x - normal * gap / 2, normal))
    return found


def _rims_against(a: Placed, b: Placed) -> list[Candidate]:
    """Rims turned towards where b is nearest to the middle of a."""
    toward = -(b.rotation @ b.solid.normal(b.to_local(a.position)))
    found = []
    for x in _rims(a, toward):
        y = b.to_local(x)
        gap, normal = b.solid.distance(y), b.rotation @ b.solid.normal(y)
        found.append(Candidate(gap, x - normal * gap / 2, normal))
    return found


def _cylinder_box(a: Placed, b: Placed) -> list[Candidate]:
    """Rims against the box, corners against the cylinder, and edges against its side."""
    return [*_rims_against(a, b), *(c.flipped() for c in points_against(b, a)), _edges(a, b)]


def _cylinder_capsule(a: Placed, b: Placed) -> list[Candidate]:
    """Rims against the capsule, its ends against the cylinder, and side against side."""
    return [*_rims_against(a, b), *(c.flipped() for c in points_against(b, a)), _edges(a, b)]


def _cylinder_cylinder(a: Placed, b: Placed) -> list[Candidate]:
    """Rims of each against the other, and side against side."""
    return [*_rims_against(a, b), *(c.flipped() for c in _rims_against(b, a)), _edges(a, b)]


SMOOTHING = 1e-6
"""Lateral offsets [m] below which a centred cylinder's direction of contact fades out."""


def _cylinder_socket(a: Placed, b: Placed) -> list[Candidate]:
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


def _rim_in_bore(b: Placed, cup: Socket, low: SX, axis: SX, r) -> Candidate:
    """Deepest point of the lower rim along its lateral offset. Only inside of the bore."""
    u, offset = _lateral(low[:2])
    along = u[0] * axis[0] + u[1] * axis[1]
    reach = r * ca.sqrt(1 - along**2 + 1e-12)
    z = low[2] + r * along * axis[2] / ca.sqrt(1 - along**2 + 1e-12) * -1
    inside = ca.logic_and(z < 0, offset < cup.bore)
    gap = ca.if_else(inside, cup.bore - offset - reach, FAR)
    point = ca.vertcat(u * (offset + reach), z)
    return Candidate(gap, b.to_world(point), b.rotation @ ca.vertcat(-u, 0))


def _body_at_mouth(b: Placed, cup: Socket, low: SX, axis: SX, r) -> Candidate:
    """The side of the cylinder against the edge of the mouth, where its axis passes the mouth."""
    t = -low[2] / axis[2]
    at = low[:2] + t * axis[:2]
    u, offset = _lateral(at)
    reach = r / axis[2]
    inside = ca.logic_and(low[2] < 0, offset < cup.bore)
    gap = ca.if_else(inside, cup.bore - offset - reach, FAR)
    point = ca.vertcat(u * cup.bore, 0)
    return Candidate(gap, b.to_world(point), b.rotation @ ca.vertcat(-u, 0))


def _face_on_cup(b: Placed, cup: Socket, low: SX, axis: SX, r) -> list[Candidate]:
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
        found.append(Candidate(gap, b.to_world(p), b.rotation[:, 2]))
    return found


PAIRS: dict[tuple[type[Solid], type[Solid]], Callable[[Placed, Placed], list[Candidate]]] = {
    (Capsule, Capsule): _capsule_capsule,
    (Capsule, Box): _capsule_box,
    (Box, Box): _box_box,
    (Cylinder, Plane): _cylinder_plane,
    (Cylinder, Box): _cylinder_box,
    (Cylinder, Capsule): _cylinder_capsule,
    (Cylinder, Cylinder): _cylinder_cylinder,
    (Cylinder, Socket): _cylinder_socket,
}
"""Pairs with a method of their own."""


def tangents(n: SX) -> tuple[SX, SX]:
    """Two unit vectors normal to a unit vector and to each other (Duff et al., Building an Orthonormal Basis, Revisited, 2017)."""
    sign = ca.if_else(n[2] < 0, -1, 1)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    return (
        ca.vertcat(1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]),
        ca.vertcat(b, sign + n[1] ** 2 * a, -n[1]),
    )
