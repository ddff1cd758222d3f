"""Contact points of two solids: where they may touch, how far apart they are there, and along which directions forces act.

`contact_points` is the entry. Which points are looked at depends on the kinds of the two solids alone:

    1. pairs with a formula of their own are rows of PAIRS;
    2. a ball touches a solid with an exact distance in one point;
    3. pairs of convex solids, and convex solids on sampled ones, are programs (`by_program` says so; see narrow.py);
    4. all others go through the points of each against the distance of the other.

All of it is differentiable, whether the shapes touch or not.
"""

from __future__ import annotations

from collections.abc import Callable

from costate.collision.contact_point import ContactPoint, Placed, points_against, tangents
from costate.collision.formulas.capsule_box import capsule_box
from costate.collision.formulas.capsule_capsule import capsule_capsule
from costate.collision.formulas.cylinder_socket import cylinder_socket
from costate.collision.formulas.onto_plane import cylinder_plane, ellipsoid_plane, hull_plane
from costate.collision.mesh.hull import Hull
from costate.collision.shapes import (
    Box,
    Capsule,
    ChamferedSocket,
    Convex,
    Cylinder,
    Ellipsoid,
    Field,
    Plane,
    Socket,
    Solid,
)

Formula = Callable[[Placed, Placed], list[ContactPoint]]

PAIRS: dict[tuple[type[Solid], type[Solid]], Formula] = {
    (Capsule, Capsule): capsule_capsule,
    (Capsule, Box): capsule_box,
    (Cylinder, Plane): cylinder_plane,
    (Cylinder, ChamferedSocket): cylinder_socket,
    (Cylinder, Socket): cylinder_socket,
    (Ellipsoid, Plane): ellipsoid_plane,
    (Hull, Plane): hull_plane,
}
"""Pairs with a formula of their own."""


def contact_points(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the points at which a and b may touch; normals point from b to a."""
    if formula := PAIRS.get((type(a.solid), type(b.solid))):
        return formula(a, b)
    if formula := PAIRS.get((type(b.solid), type(a.solid))):
        return [c.flipped() for c in formula(b, a)]
    if b.solid.is_ball:  # one exact point instead of many
        return [c.flipped() for c in points_against(b, a)]
    if isinstance(a.solid, Field) or isinstance(b.solid, Field):
        return []
    found = points_against(a, b)
    return found if a.solid.is_ball else found + [c.flipped() for c in points_against(b, a)]


def by_program(a: Solid, b: Solid) -> bool:
    """Return whether a pair is a program of narrow.py: convex solids, unless there is a formula."""
    convex = isinstance(a, Convex), isinstance(b, Convex)
    if isinstance(a, Field) or isinstance(b, Field):
        return any(convex)
    formula = (type(a), type(b)) in PAIRS or (type(b), type(a)) in PAIRS
    touches_ball = (a.is_ball or b.is_ball) and a.has_exact_distance and b.has_exact_distance
    return all(convex) and not formula and not touches_ball


__all__ = ["PAIRS", "ContactPoint", "Placed", "by_program", "contact_points", "points_against", "tangents"]
