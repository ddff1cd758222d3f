"""Contact points: where two solids may touch, and the points of one solid against the distance of another."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.shapes.solid import Number, Solid

BESIDE = SX([1e-9, 2e-9, 3e-9])
"""Offset at which a normal is looked for that a point in the very middle of a solid does not have [m]."""


POSE = 12
"""Numbers of a pose: the rotation, column by column, and the position."""


def pose(x: SX) -> tuple[SX, SX]:
    """Return rotation and position from a column."""
    return ca.reshape(x[:9], 3, 3), x[9:]


def relative_pose(x: SX, y: SX) -> tuple[SX, SX]:
    """Return rotation and position of the pose x, seen from the pose y."""
    (Ra, pa), (Rb, pb) = pose(x), pose(y)
    return Rb.T @ Ra, Rb.T @ (pa - pb)


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
    """A point at which two shapes may touch."""

    gap: SX
    """Distance [m], negative where they overlap."""
    point: SX
    """Point midway between the surfaces, world axes (3,)."""
    normal: SX
    """Unit vector from the second shape to the first, (3,)."""

    def flipped(self) -> ContactPoint:
        return ContactPoint(self.gap, self.point, -self.normal)


def points_against(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the points of a against the distance of b; normals point from b to a."""
    facing = b.solid.facing
    points = a.solid.points() if facing is None else a.solid.points_toward(-(a.rotation.T @ (b.rotation @ facing)))
    return [ball_against(a.to_world(p), radius, b) for p, radius in points]


def ball_against(x: SX, radius: Number, b: Placed) -> ContactPoint:
    """Return the contact of a ball around x (3,), world axes, with b; the normal points to the ball."""
    y = b.to_local(x)
    gap = b.solid.distance(y) - radius
    normal = b.rotation @ _some_normal(b.solid, y)
    return ContactPoint(gap, x - normal * (radius + gap / 2), normal)


def _some_normal(solid: Solid, p: SX) -> SX:
    """Return the outward unit normal; at points with several, such as a centre, one of them."""
    normal = solid.normal(p)
    if normal.is_constant():
        return normal
    return ca.if_else(ca.dot(normal, normal) > 0.5 + 1e-6, normal, solid.normal(p + BESIDE))


def tangents(n: SX) -> tuple[SX, SX]:
    """Return two unit vectors normal to a unit vector and to each other (Duff et al., Building an Orthonormal Basis, Revisited,
    2017)."""
    sign = ca.if_else(n[2] < 0, -1, 1)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    return (
        ca.vertcat(1 + sign * n[0] ** 2 * a, sign * b, -sign * n[0]),
        ca.vertcat(b, sign + n[1] ** 2 * a, -n[1]),
    )
