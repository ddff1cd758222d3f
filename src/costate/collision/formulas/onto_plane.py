"""Solids on a plane: the points they stand on, in world axes."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed
from costate.collision.convex.manifold import ManifoldPoint, pick
from costate.collision.shapes.cylinder import Cylinder
from costate.collision.shapes.ellipsoid import Ellipsoid
from costate.collision.shapes.rays import FAR


def cylinder_plane(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return four points of each rim, the lowest among them."""
    assert isinstance(a.solid, Cylinder)
    return _on_plane(a.solid.rims(-b.rotation[:, 2], a.rotation, a.position), b)


def ellipsoid_plane(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the lowest point."""
    assert isinstance(a.solid, Ellipsoid)
    return _on_plane([a.to_world(a.solid.support(-(a.rotation.T @ b.rotation[:, 2])))], b)


def _on_plane(points: list[SX], b: Placed) -> list[ContactPoint]:
    normal = b.rotation[:, 2]
    gaps = [ca.dot(x - b.position, normal) for x in points]
    return [ContactPoint(gap, x - normal * gap / 2, normal) for x, gap in zip(points, gaps, strict=True)]


def hull_plane(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the lowest corner, and three more that span the largest area with it."""
    found = [ManifoldPoint(SX(1), ca.vertcat(b.to_local(a.to_world(p)), 0)) for p, _ in a.solid.points()]
    normal = b.rotation[:, 2]
    return [
        ContactPoint(ca.if_else(p.valid, p.at[2], FAR), b.to_world(ca.vertcat(p.at[:2], p.at[2] / 2)), normal)
        for p in pick(found)
    ]
