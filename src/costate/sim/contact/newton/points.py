"""Contact points as MuJoCo places them, and its axes of friction."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.pairs import ContactPoint, Placed, contact_points, points_against
from costate.collision.shapes import Box, Capsule, Plane

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
    return [(c, None) for c in contact_points(a, b)]


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
