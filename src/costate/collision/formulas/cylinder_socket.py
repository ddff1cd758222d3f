"""A cylinder in the bore of a socket, with its lower end (local -z) going down. The outside of the cup is not looked at."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed
from costate.collision.shapes.cylinder import Cylinder
from costate.collision.shapes.rays import FAR
from costate.collision.shapes.socket import Socket
from costate.collision.shapes.solid import Number, length

SMOOTHING = 1e-6
"""Lateral offsets [m] below which a centred cylinder's direction of contact fades out."""


def cylinder_socket(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the rim's deepest point against the wall, the body against the mouth's edge, and the lower face against floor and rim
    of the cup."""
    assert isinstance(a.solid, Cylinder) and isinstance(b.solid, Socket)
    cup, r = b.solid, a.solid.radius
    axis = b.rotation.T @ a.rotation[:, 2]
    low = b.to_local(a.to_world(ca.vertcat(0, 0, -a.solid.length / 2)))
    found = [_rim_in_bore(b, cup, low, axis, r), body_at_edge(b, cup.bore, 0, low, axis, r)]
    return found + face_on_cup(b, cup, cup.bore, low, axis, r)


def lateral_offset(offset: SX) -> tuple[SX, SX]:
    """Return direction and size of a lateral offset (2,); both fade out smoothly at the centre."""
    size = ca.sqrt(ca.dot(offset, offset) + SMOOTHING**2)
    return offset / size, size - SMOOTHING


def lowest_beside(u: SX, low: SX, axis: SX, r: Number) -> tuple[SX, SX]:
    """Return how far the lower rim reaches beyond its middle in a lateral direction, and the height of that point."""
    along = u[0] * axis[0] + u[1] * axis[1]
    reach = r * ca.sqrt(1 - along**2 + 1e-12)
    return reach, low[2] + r * along * axis[2] / ca.sqrt(1 - along**2 + 1e-12) * -1


def _rim_in_bore(b: Placed, cup: Socket, low: SX, axis: SX, r: Number) -> ContactPoint:
    """Return the deepest point of the lower rim along its lateral offset, where it is inside of the bore."""
    u, offset = lateral_offset(low[:2])
    reach, z = lowest_beside(u, low, axis, r)
    inside = ca.logic_and(z < 0, offset < cup.bore)
    gap = ca.if_else(inside, cup.bore - offset - reach, FAR)
    point = ca.vertcat(u * (offset + reach), z)
    return ContactPoint(gap, b.to_world(point), b.rotation @ ca.vertcat(-u, 0))


def body_at_edge(b: Placed, bore: Number, height: Number, low: SX, axis: SX, r: Number) -> ContactPoint:
    """Return the side of the cylinder against the bore's upper edge, where its axis passes the height of that."""
    t = (height - low[2]) / axis[2]
    at = low[:2] + t * axis[:2]
    u, offset = lateral_offset(at)
    reach = r / axis[2]
    inside = ca.logic_and(low[2] < height, offset < bore)
    gap = ca.if_else(inside, bore - offset - reach, FAR)
    point = ca.vertcat(u * bore, height)
    return ContactPoint(gap, b.to_world(point), b.rotation @ ca.vertcat(-u, 0))


def face_on_cup(b: Placed, cup: Socket, mouth: Number, low: SX, axis: SX, r: Number) -> list[ContactPoint]:
    """Return four points of the lower rim against the floor of the bore, or against the cup's upper face where they are outside of
    its mouth (a radius) while the cylinder has not gone in."""
    x = ca.vertcat(1 - axis[0] ** 2, -axis[0] * axis[1], -axis[0] * axis[2])
    x = x / length(x)
    y = ca.cross(axis, x)
    found = []
    for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        p = low + r * (c * x + s * y)
        lateral = ca.sqrt(p[0] ** 2 + p[1] ** 2 + SMOOTHING**2)
        on_rim = ca.logic_and(lateral > mouth, p[2] > -cup.depth / 4)
        gap = ca.if_else(on_rim, p[2], p[2] + cup.depth)
        gap = ca.if_else(lateral < cup.radius, gap, FAR)
        found.append(ContactPoint(gap, b.to_world(p), b.rotation[:, 2]))
    return found
