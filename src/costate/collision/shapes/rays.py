"""Rays: intervals of distances at which they are inside of convex solids.

A ray meets a convex solid along an interval of distances. The distance seen is where it begins, or, from inside, where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
from casadi import SX

FAR = 1e3
"""Distance at which nothing touches or is seen [m]."""
PARALLEL = 1e-15
"""Slopes below this count as none."""

Interval = tuple[SX, SX]
"""Distances [m] at which a ray enters and leaves, negative ones behind it; where it misses, the first is larger."""


def first_hit(near: SX, far: SX) -> SX:
    """Return the distance at which a ray first meets the surface of a solid, FAR where it does not."""
    first = ca.if_else(near >= 0, near, far)
    return ca.if_else(ca.logic_and(near <= far, far >= 0), first, FAR)


def quadric(a: SX, b: SX, c: SX) -> Interval:
    """Return where a t^2 + 2 b t + c <= 0, for a >= 0."""
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


def ball(radius: SX | float, p: SX, d: SX) -> Interval:
    """Return the interval in a ball (or a disc, where p and d are flat) around the origin."""
    return quadric(ca.dot(d, d), ca.dot(p, d), ca.dot(p, p) - radius**2)


def between(sides: Sequence[tuple[SX, SX]], p: SX, d: SX) -> Interval:
    """Return the interval between planes n x <= b, given as (n (3,), b)."""
    near, far = SX(-FAR), SX(FAR)
    for n, b in sides:
        slope, room = ca.dot(n, d), b - ca.dot(n, p)
        enters, leaves = slope < -PARALLEL, slope > PARALLEL
        at = room / ca.if_else(ca.logic_or(enters, leaves), slope, 1)
        beside = ca.if_else(room < 0, FAR, -FAR)  # never in, or always
        near = ca.fmax(near, ca.if_else(enters, at, ca.if_else(leaves, -FAR, beside)))
        far = ca.fmin(far, ca.if_else(leaves, at, FAR))
    return near, far


def slab(k: int, half: SX | float) -> list[tuple[SX, SX]]:
    """Return the two planes at a distance from the origin along axis k, as `between` takes them."""
    return [(axis(k, sign), SX(half)) for sign in (-1, 1)]


def both(a: Interval, b: Interval) -> Interval:
    """Return the interval in which a ray is in two solids."""
    return ca.fmax(a[0], b[0]), ca.fmin(a[1], b[1])


def either(parts: Sequence[Interval]) -> Interval:
    """Return the interval in which a ray is in any of some solids that together are convex."""
    near, far = SX(FAR), SX(-FAR)
    for low, high in parts:
        meets = low <= high
        near, far = ca.fmin(near, ca.if_else(meets, low, FAR)), ca.fmax(far, ca.if_else(meets, high, -FAR))
    return near, far


def axis(k: int, sign: int = 1) -> SX:
    """Return a unit vector along axis k, (3,)."""
    x = SX(3, 1)
    x[k] = sign
    return x
