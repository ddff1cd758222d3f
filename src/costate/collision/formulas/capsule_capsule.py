"""Two capsules: the closest points of their segments."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed
from costate.collision.shapes.capsule import Capsule
from costate.collision.shapes.solid import length


def capsule_capsule(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the closest points of two segments (Ericson, Real-Time Collision Detection, 5.1.9), radii added."""
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
