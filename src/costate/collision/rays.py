"""Rays: how far it is along a direction to the surface of a solid.

A ray meets a convex solid along an interval of distances. The distance seen is where it begins, or, from inside, where it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import casadi as ca
from casadi import SX

from costate.collision.mesh.hull import Hull
from costate.collision.shapes import FAR, Box, Capsule, Cylinder, Ellipsoid, Moved, Plane, Solid, Sphere, Union

PARALLEL = 1e-15
"""Slopes below count as none."""

Interval = tuple[SX, SX]
"""Distances [m] at which a ray enters and leaves, negative ones behind it; where it misses, the first is larger."""


def ray_distance(solid: Solid, p: SX, d: SX) -> SX:
    """Distance [m] from p along the unit vector d, both (3,) in the frame of the solid; FAR where nothing is hit."""
    if isinstance(solid, Moved):
        R = SX(solid.pose.rotation)
        return ray_distance(solid.a, R.T @ (p - SX(solid.pose.translation)), R.T @ d)
    if isinstance(solid, Union):
        return ca.fmin(ray_distance(solid.a, p, d), ray_distance(solid.b, p, d))
    for kind, interval in INTERVALS.items():
        if isinstance(solid, kind):
            near, far = interval(solid, p, d)
            first = ca.if_else(near >= 0, near, far)
            return ca.if_else(ca.logic_and(near <= far, far >= 0), first, FAR)
    raise TypeError(f"rays do not see a {type(solid).__name__}, only {', '.join(k.__name__ for k in INTERVALS)}")


def _sphere(solid: Sphere, p: SX, d: SX) -> Interval:
    return _quadric(ca.dot(d, d), ca.dot(p, d), ca.dot(p, p) - solid.radius**2)


def _ellipsoid(solid: Ellipsoid, p: SX, d: SX) -> Interval:
    x, y = p / solid.semi, d / solid.semi
    return _quadric(ca.dot(y, y), ca.dot(x, y), ca.dot(x, x) - 1)


def _plane(solid: Plane, p: SX, d: SX) -> Interval:
    """Seen from above alone."""
    down = d[2] < -PARALLEL
    at = ca.if_else(down, -p[2] / ca.if_else(down, d[2], -1), -1)
    return at, at


def _box(solid: Box, p: SX, d: SX) -> Interval:
    half = solid.size / 2
    sides = [(_axis(k, sign), half[k]) for k, sign in product(range(3), (-1, 1))]
    return _within(sides, p, d)


def _hull(solid: Hull, p: SX, d: SX) -> Interval:
    sides = [(n, ca.dot(n, q[0])) for n, q in zip(solid.normals, solid.polygons, strict=True)]
    return _within(sides, p, d)


def _cylinder(solid: Cylinder, p: SX, d: SX) -> Interval:
    x, y = p[:2], d[:2]
    side = _quadric(ca.dot(y, y), ca.dot(x, y), ca.dot(x, x) - solid.radius**2)
    return _both(side, _within([(_axis(2, sign), SX(solid.length / 2)) for sign in (-1, 1)], p, d))


def _capsule(solid: Capsule, p: SX, d: SX) -> Interval:
    parts = [_cylinder(Cylinder(solid.radius, solid.length), p, d)]
    parts += [_sphere(Sphere(solid.radius), p - sign * solid.length / 2 * _axis(2, 1), d) for sign in (-1, 1)]
    near, far = SX(FAR), SX(-FAR)
    for low, high in parts:
        meets = low <= high
        near, far = ca.fmin(near, ca.if_else(meets, low, FAR)), ca.fmax(far, ca.if_else(meets, high, -FAR))
    return near, far


INTERVALS: dict[type[Solid], Callable[..., Interval]] = {
    Sphere: _sphere,
    Ellipsoid: _ellipsoid,
    Plane: _plane,
    Box: _box,
    Hull: _hull,
    Cylinder: _cylinder,
    Capsule: _capsule,
}
"""Kind of solid -> the interval of a ray in it."""


def _quadric(a: SX, b: SX, c: SX) -> Interval:
    """Where a t^2 + 2 b t + c <= 0."""
    slopes = a > PARALLEL
    inside = ca.logic_and(ca.logic_not(slopes), c <= 0)
    disc = b * b - a * c
    meets = ca.logic_and(slopes, disc >= 0)
    # Where the root is not wanted its argument is one, so that no derivative is formed at zero.
    root = ca.sqrt(ca.if_else(disc > 0, disc, 1))
    root, over = ca.if_else(disc > 0, root, 0), ca.if_else(slopes, a, 1)
    ends = [(-b - root) / over, (-b + root) / over]
    return (
        ca.if_else(meets, ends[0], ca.if_else(inside, -FAR, FAR)),
        ca.if_else(meets, ends[1], ca.if_else(inside, FAR, -FAR)),
    )


def _within(sides: Sequence[tuple[SX, SX]], p: SX, d: SX) -> Interval:
    """Between planes n x <= b, given as (n (3,), b)."""
    near, far = SX(-FAR), SX(FAR)
    for n, b in sides:
        slope, room = ca.dot(n, d), b - ca.dot(n, p)
        enters, leaves = slope < -PARALLEL, slope > PARALLEL
        at = room / ca.if_else(ca.logic_or(enters, leaves), slope, 1)
        beside = ca.if_else(room < 0, FAR, -FAR)  # never in, or always
        near = ca.fmax(near, ca.if_else(enters, at, ca.if_else(leaves, -FAR, beside)))
        far = ca.fmin(far, ca.if_else(leaves, at, FAR))
    return near, far


def _both(a: Interval, b: Interval) -> Interval:
    return ca.fmax(a[0], b[0]), ca.fmin(a[1], b[1])


def _axis(k: int, sign: int) -> SX:
    x = SX(3, 1)
    x[k] = sign
    return x
