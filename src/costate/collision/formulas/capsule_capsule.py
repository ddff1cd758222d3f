"""Two capsules: the closest points of their segments.

    s = (u x v) . (v x r) / |u x v|^2        u, v: axes; r: way from the middle of b to that of a

This form of the closest point of two lines has no differences of large numbers, which leave nothing of a small angle in float32.
Near to parallel the closest point could be anywhere: there it goes over to the middle of the part that the segments have beside
each other, so that it, and its derivatives, stay bounded.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed
from costate.collision.shapes.capsule import Capsule
from costate.collision.shapes.solid import length

PARALLEL = 1e-6
"""Square of the sine of the angle at which the closest point of the lines and the middle count the same; beyond three times the
angle the middle does not count."""
EXACTLY = 1e-14
"""Square of the sine of an angle that is none."""
CROSSING = 1e-7
"""Distance of the segments below which the normal is normal to both of them [m]."""


def capsule_capsule(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the closest points of two segments, radii added."""
    assert isinstance(a.solid, Capsule) and isinstance(b.solid, Capsule)
    u, v = a.rotation[:, 2], b.rotation[:, 2]
    halves = a.solid.length / 2, b.solid.length / 2
    r = a.position - b.position
    s, t = _closest(u, v, r, *halves)
    y = b.position + t * v
    between = a.position + s * u - y
    across = ca.cross(u, v)
    skew = ca.dot(across, across) > 9 * PARALLEL
    beside = ca.if_else(skew, across, a.rotation[:, 0])
    beside = beside / length(beside)
    # Between their ends two lines are nearest along their common normal, however near to each other they are.
    lines = ca.logic_and(skew, ca.logic_and(ca.fabs(s) < halves[0], ca.fabs(t) < halves[1]))
    lines = ca.logic_or(lines, ca.dot(between, between) < CROSSING**2)
    side = ca.if_else(ca.dot(beside, r) < 0, -1, 1)
    distance = ca.if_else(lines, side * ca.dot(beside, r), length(between))
    normal = ca.if_else(lines, side * beside, between / length(between))
    gap = distance - a.solid.radius - b.solid.radius
    return [ContactPoint(gap, y + normal * (b.solid.radius + gap / 2), normal)]


def _closest(u: SX, v: SX, r: SX, half_a: SX | float, half_b: SX | float) -> tuple[SX, SX]:
    """Return where the closest points of two segments are, from their middles along unit directions u and v [m]."""
    across = ca.cross(u, v)
    square, cosine = ca.dot(across, across), ca.dot(u, v)
    along_u, along_v = ca.dot(u, r), ca.dot(v, r)
    middle = (ca.fmax(-half_a, -along_u - half_b) + ca.fmin(half_a, half_b - along_u)) / 2
    apart = ca.dot(r, r) - along_v**2  # axes that nearly meet leave less room for error
    apart = ca.fmax(apart, 0) / (ca.fmax(apart, 0) + (half_a**2 + half_b**2) / 200)
    weight = PARALLEL * ca.fmax(1 - square / (9 * PARALLEL), 0) ** 2 * apart + EXACTLY
    on_line = ca.dot(across, ca.cross(v, r))
    s = _within((on_line + weight * middle) / (square + weight), half_a)
    t = _within(cosine * s + along_v, half_b)
    return _within(cosine * t - along_u, half_a), t


def _within(x: SX, half: SX | float) -> SX:
    return ca.fmin(ca.fmax(x, -half), half)
