"""Cables around circles, spheres and cylinders: where they touch, and how long they run along them.

The rules are those of MuJoCo's spatial tendons. A sphere is wrapped in the plane of its centre and the two end points, a cylinder
in its cross-section, while the cable rises evenly with its length. Every choice is an if_else whose unused side has harmless
arguments, so that derivatives are finite everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.physics.algebra.spatial import cross
from costate.physics.tree import Pose

TINY = 1e-15
ITERATIONS, TOLERANCE, START = 20, 1e-12, 1 - 1e-7
"""Iterations, tolerance [rad] and start of Newton's method for a cable inside of a circle."""


@dataclass(frozen=True, eq=False)
class Touch:
    """A cable that may touch a shape on its way from one point to another."""

    wraps: SX
    """1 where it touches, else 0."""
    first: SX
    second: SX
    """Points at which it reaches and leaves the shape, (3,) in world axes; where it does not touch they are arbitrary."""
    along: SX
    """Length of the cable on the shape [m]."""


def wrap(kind: str, radius: float, shape: Pose, a: SX, b: SX, side: SX | None) -> Touch:
    """Return how a cable from a to b (world axes) touches a sphere or cylinder. side: point on whose side it passes."""
    R, centre = shape
    p, q = R.T @ (a - centre), R.T @ (b - centre)
    x, y = _plane(p, q) if kind == "sphere" else (SX([1, 0, 0]), SX([0, 1, 0]))
    d, e = (ca.vertcat(ca.dot(point, x), ca.dot(point, y)) for point in (p, q))
    s = None if side is None else R.T @ (side - centre)
    found = _around(d, e, None if s is None else _to_circle(s, x, y, radius), radius)
    if s is not None:
        found = _either(ca.dot(s, s) < radius**2, _inside(d, e, radius), found)
    far = ca.logic_and(ca.dot(p, p) > TINY**2, ca.dot(q, q) > TINY**2)
    wraps, along = ca.logic_and(far, found.wraps), found.along
    first, second = (x * t[0] + y * t[1] for t in (found.first, found.second))
    if kind == "cylinder":
        before, after = _distance(p[:2], first[:2]), _distance(q[:2], second[:2])
        rise = (q[2] - p[2]) / ca.if_else(wraps, before + along + after, 1)
        first = ca.vertcat(first[:2], p[2] + rise * before)
        second = ca.vertcat(second[:2], p[2] + rise * (before + along))
        along = along * ca.sqrt(1 + rise**2)
    return Touch(wraps, centre + R @ first, centre + R @ second, along)


def _plane(p: SX, q: SX) -> tuple[SX, SX]:
    """Return two unit vectors, the first one towards p, that span the plane of p, q and the origin; any such plane if these are in
    line."""
    x = p / _norm(p)
    normal = cross(p, q)
    in_line = ca.dot(normal, normal) < TINY**2
    size = ca.fabs(x)
    largest = [ca.logic_and(size[k] >= size[(k + 1) % 3], size[k] >= size[(k + 2) % 3]) for k in range(3)]
    spare = cross(x, ca.vertcat(*(1 - k for k in largest)))
    normal = ca.if_else(in_line, spare, normal)
    return x, cross(normal / _norm(normal), x)


def _to_circle(s: SX, x: SX, y: SX, radius: float) -> SX:
    flat = ca.vertcat(ca.dot(s, x), ca.dot(s, y))
    return radius * flat / _norm(flat)


def _around(d: SX, e: SX, side: SX | None, radius: float) -> Touch:
    """Return the touch of a cable that runs around the outside of a circle at the origin.

    It takes the short way, and only where the straight line would cut the circle; or the long way, if the side lies between the
    directions opposite to d and e.
    """
    r2, d2, e2 = radius**2, ca.dot(d, d), ca.dot(e, e)
    outside = ca.logic_and(d2 >= r2, e2 >= r2)
    way = e - d
    apart = ca.dot(way, way) > TINY
    part = ca.fmin(ca.fmax(-ca.dot(way, d) / ca.if_else(apart, ca.dot(way, way), 1), 0), 1)
    nearest = d + part * way
    wraps, turn = ca.dot(nearest, nearest) <= r2, _turn(d, e)
    clockwise = turn < 0
    if side is not None:
        long = ca.logic_and(_turn(side, e) * turn < 0, _turn(d, side) * turn < 0)
        wraps = ca.logic_or(wraps, long)
        clockwise = ca.if_else(long, turn > 0, clockwise)
    lengths = [ca.sqrt(ca.if_else(x2 > r2, x2 - r2, TINY)) for x2 in (d2, e2)]
    sign = ca.if_else(clockwise, 1, -1)
    a, b = _tangent(d, sign * lengths[0], radius), _tangent(e, -sign * lengths[1], radius)
    return Touch(ca.logic_and(ca.logic_and(outside, apart), wraps), a, b, _arc(a, b, sign, radius))


def _turn(a: SX, b: SX) -> SX:
    """Return a x b, positive where b lies to the left of a."""
    return a[0] * b[1] - a[1] * b[0]


def _tangent(x: SX, length: SX, radius: float) -> SX:
    """Return where a tangent from x touches: to its right (seen from the origin) where the length is positive."""
    x = ca.if_else(ca.dot(x, x) > TINY, x, SX([1, 0]))
    return (x * radius**2 + radius * length * ca.vertcat(x[1], -x[0])) / ca.dot(x, x)


def _arc(a: SX, b: SX, sign: SX, radius: float) -> SX:
    """Return the length of the circle from a to b, clockwise if the sign is 1."""
    # An angle by atan2 has derivatives where an arc cosine has none: at zero and at half a turn.
    angle = ca.atan2(-sign * _turn(a, b), ca.dot(a, b))
    return radius * ca.if_else(angle < 0, angle + 2 * ca.pi, angle)


def _inside(d: SX, e: SX, radius: float) -> Touch:
    """Return the touch of a cable that runs through a circle from inside: one point, the one of the shortest way."""
    d2, e2, way = ca.dot(d, d), ca.dot(e, e), e - d
    way2 = ca.dot(way, way)
    outside = ca.logic_and(d2 > radius**2, e2 > radius**2)
    apart = way2 > TINY
    part = -ca.dot(way, d) / ca.if_else(apart, way2, 1)
    nearest = d + part * way
    within = ca.logic_and(apart, ca.logic_and(part > 0, part < 1))
    cuts = ca.logic_and(within, ca.dot(nearest, nearest) <= radius**2)
    len_d, len_e = (ca.sqrt(ca.if_else(outside, x2, 1)) for x2 in (d2, e2))
    A, B = (ca.if_else(outside, radius / x, 0.5) for x in (len_d, len_e))
    cosine = ca.dot(d, e) / (len_d * len_e)
    opposite, aligned = cosine < -1 + TINY, cosine > 1 - TINY
    middle = d + e
    plain = radius * middle / _norm(middle)
    bent = ca.logic_and(outside, ca.logic_not(ca.logic_or(opposite, aligned)))
    angle = ca.acos(ca.if_else(bent, cosine, 0))
    z, solved = _newton(A, B, angle)
    left = d[0] * e[1] - d[1] * e[0] > 0
    towards = ca.if_else(left, d / len_d, e / len_e)
    turn = ca.asin(z) - ca.asin(ca.if_else(left, A, B) * z)
    c, s = ca.cos(turn), ca.sin(turn)
    exact = radius * ca.vertcat(c * towards[0] - s * towards[1], s * towards[0] + c * towards[1])
    at = ca.if_else(ca.logic_and(bent, solved), exact, plain)
    wraps = ca.logic_and(outside, ca.logic_not(ca.logic_or(cuts, opposite)))
    return Touch(wraps, at, at, SX(0))


def _newton(A: SX, B: SX, angle: SX) -> tuple[SX, SX]:
    """Solve asin(A z) + asin(B z) - 2 asin(z) + angle = 0 for z from the right. Return z, and whether that succeeded."""

    def f(z: SX) -> SX:
        return ca.asin(A * z) + ca.asin(B * z) - 2 * ca.asin(z) + angle

    z = SX(START)
    value = f(z)
    good = value <= 0
    for _ in range(ITERATIONS):
        slope = sum((w * k / ca.sqrt(1 - (k * z) ** 2) for w, k in ((1, A), (1, B), (-2, SX(1)))), SX(0))
        going = ca.logic_and(good, ca.fabs(value) > TOLERANCE)
        steep = slope < -TINY
        moved = z - value / ca.if_else(steep, slope, -1)
        fine = ca.logic_and(steep, ca.logic_and(moved <= z, moved > -1))
        good = ca.logic_and(good, ca.logic_or(ca.logic_not(going), fine))
        z = ca.if_else(ca.logic_and(going, fine), moved, z)
        value = f(z)
        good = ca.logic_and(good, value <= TOLERANCE)
    return z, ca.logic_and(good, ca.fabs(value) <= TOLERANCE)


def _either(condition: SX, a: Touch, b: Touch) -> Touch:
    pairs = ((a.wraps, b.wraps), (a.first, b.first), (a.second, b.second), (a.along, b.along))
    return Touch(*(ca.if_else(condition, x, y) for x, y in pairs))


def _distance(a: SX, b: SX) -> SX:
    far = ca.dot(a - b, a - b) >= TINY**2
    return ca.if_else(far, _norm(a - b), 0)


def _norm(x: SX) -> SX:
    """Return the length of a vector; 1 where it is zero, so that quotients and derivatives are finite."""
    n2 = ca.dot(x, x)
    zero = n2 < TINY**2
    return ca.sqrt(ca.if_else(zero, 1, n2))
