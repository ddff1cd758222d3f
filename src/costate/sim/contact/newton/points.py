"""Contact points as MuJoCo places them, and its axes of friction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import casadi as ca
from casadi import SX

from costate.collision.pairs import ContactPoint, Placed, contact_points, points_against
from costate.collision.shapes import Box, Capsule, Cylinder, Plane

UPRIGHT = 1e-15
"""Sine of the angle below which a cylinder on a plane counts as upright."""
AS_IN_MUJOCO = {
    *(frozenset(("plane", kind)) for kind in ("sphere", "capsule", "box", "cylinder", "ellipsoid")),
    *(frozenset(("sphere", kind)) for kind in ("sphere", "capsule", "box", "cylinder")),
    frozenset(("capsule",)),
}
"""Kinds of shapes whose contact points are MuJoCo's. For all others there are several choices, or a search that ends somewhere."""
Point = tuple[ContactPoint, SX | None]
"""A contact point, and the direction (3,) its first axis of friction is near to; None: MuJoCo's own choice."""


def points(a: Placed, b: Placed) -> list[Point]:
    """Return the contact points of a and b; normals point from b to a."""
    if isinstance(a.solid, Plane):
        return [(c.flipped(), along) for c, along in points(b, a)]
    if isinstance(b.solid, Plane) and isinstance(a.solid, Capsule):
        return [(c, a.rotation[:, 2]) for c in points_against(a, b)]
    if isinstance(b.solid, Plane) and isinstance(a.solid, Box):
        return [(c, None) for c in _lower_corners(a, b)]
    if isinstance(b.solid, Plane) and isinstance(a.solid, Cylinder):
        return [(c, None) for c in _lower_rim(a, b)]
    return [(c, None) for c in contact_points(a, b)]


def own_points(kinds: Iterable[tuple[str, str]]) -> str | None:
    """Return which pairs of kinds of shapes have contact points other than MuJoCo's, in words; None if there are none."""
    names = [" and ".join(sorted(pair)) for pair in kinds if frozenset(pair) not in AS_IN_MUJOCO]
    listed = ", ".join(f"{name} ({count} pair{'s' * (count > 1)})" for name, count in sorted(Counter(names).items()))
    return listed or None


def _lower_corners(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the end of every diagonal of a box that is nearer to the plane."""
    assert isinstance(a.solid, Box)
    normal = b.rotation[:, 2]
    down = a.rotation.T @ normal
    half = a.solid.size / 2
    found = []
    for signs in ((1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)):
        corner = ca.vertcat(*(s * half[k] for k, s in enumerate(signs)))
        x = a.to_world(ca.if_else(ca.dot(corner, down) > 0, -corner, corner))
        gap = ca.dot(x - b.position, normal)
        found.append(ContactPoint(gap, x - normal * gap / 2, normal))
    return found


def _lower_rim(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the lowest point of a cylinder, the other end of its lower line, and two points that make the lower rim's triangle."""
    assert isinstance(a.solid, Cylinder)
    normal, axis = b.rotation[:, 2], a.rotation[:, 2]
    rise = ca.dot(normal, axis)
    down = ca.if_else(rise > 0, -axis, axis)
    flat = down * ca.dot(down, normal) - normal
    size = ca.dot(flat, flat)
    leans = size > UPRIGHT**2
    toward = ca.if_else(leans, flat / ca.sqrt(ca.if_else(leans, size, 1)), a.rotation[:, 0])
    r, half = a.solid.radius * toward, a.solid.length / 2 * down
    aside = ca.sqrt(3) / 2 * ca.cross(r, down)
    found = []
    for x in (r + half, r - half, half - r / 2 + aside, half - r / 2 - aside):
        at = a.position + x
        gap = ca.dot(at - b.position, normal)
        found.append(ContactPoint(gap, at - normal * gap / 2, normal))
    return found


def axes(normal: SX, along: SX | None) -> tuple[SX, SX]:
    """Return the two axes of friction of a contact, unit vectors normal to its normal and to each other."""
    sideways = ca.fabs(normal[1]) < 0.5
    usual = ca.vertcat(0, ca.if_else(sideways, 1, 0), ca.if_else(sideways, 0, 1))
    first = _across(usual, normal)
    if along is not None:
        flat = along - ca.dot(along, normal) * normal
        lies = ca.dot(flat, flat) > 1e-16
        first = ca.if_else(lies, flat / ca.sqrt(ca.if_else(lies, ca.dot(flat, flat), 1)), first)
    return first, ca.cross(normal, first)


def _across(x: SX, normal: SX) -> SX:
    flat = x - ca.dot(x, normal) * normal
    return flat / ca.sqrt(ca.dot(flat, flat))
