"""Convex solids as contact sees them: how far they reach, and the face, edge or point they show in a direction.

A convex solid is a core (a point, a segment, a box, ...) and a radius of rounding around it: a sphere is a point with its radius, a
capsule a segment. All questions are about the core, in the solid's own frame:

    support         the point furthest in a direction; GJK needs nothing else (convex/gjk.py)
    face            the polygon, edge or point turned to a direction; contact points lie on it (convex/manifold.py)
    flats           directions within a face or along an edge that a nearly normal direction is then made exactly normal to
    face_normals,   the directions along which solids without round surfaces can overlap least (convex/axes.py)
    edge_axes

Only `support` must be there. Without the others a solid is round all over: it touches in one point.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import casadi as ca
from casadi import SX

from costate.collision.shapes.rays import axis
from costate.collision.shapes.solid import Number, Solid, length

SNAP = 1e-3
"""Sine of the angle within which a direction is tried as the normal of a face, or as normal to an edge."""

Flats = tuple[SX, SX, SX]
"""Two directions within a face, and one along an edge, (3,) each; zeros where there is none."""


class Convex(Solid):
    """A convex solid. Directions need not have length one; points are (3,)."""

    is_round: ClassVar[bool] = True
    """True if its core has round surfaces, so that the direction of least depth must be searched."""
    edge_axes: ClassVar[tuple[int, ...]] = ()
    """Axes of the solid that straight edges lie along, where these are few."""

    @property
    def rounding(self) -> Number:
        """Radius of what surrounds the core [m]."""
        return 0.0

    @abstractmethod
    def support(self, d: SX) -> SX:
        """Return the point of the core that is furthest in a direction."""

    def face(self, d: SX) -> list[SX]:
        """Return the corners of the face, edge or point of the core that is turned to a direction, in order around it."""
        return [self.support(d)]

    def flats(self, n: SX) -> Flats:
        """Return two directions within the face, and one along the edge, whose normal a unit direction nearly is."""
        return no_flats()

    def face_normals(self, p: SX) -> list[SX]:
        """Return outward normals of flat faces through which a point may leave first; of solids with few."""
        return []

    def bounding_box(self) -> tuple[SX, SX]:
        high, low = (ca.vertcat(*(self.support(axis(k, sign))[k] for k in range(3))) for sign in (1, -1))
        return (high + low) / 2, (high - low) / 2 + self.rounding

    def bounding_sphere(self) -> tuple[SX, SX]:
        middle, half = self.bounding_box()
        return middle, length(half)


def no_flats() -> Flats:
    """Return zeros."""
    return SX.zeros(3), SX.zeros(3), SX.zeros(3)


def sign(x: SX) -> SX:
    """Return 1 or -1; 1 at zero."""
    return ca.if_else(x < 0, -1, 1)


def side_flats(n: SX) -> Flats:
    """Return the flats of a solid that is straight along z."""
    return SX.zeros(3), SX.zeros(3), ca.vertcat(0, 0, ca.fabs(n[2]) < SNAP)


def across_z(d: SX) -> tuple[SX, SX]:
    """Return the unit direction (2,) of d across z, any one where d is along z, and the one at a right angle to it."""
    tilt = d[:2] + 1e-9 * ca.vertcat(1, 0)
    u = tilt / length(tilt)
    return u, ca.vertcat(-u[1], u[0])


def polygon_flats(points: list[SX], n: SX) -> Flats:
    """Return the first two edges of a polygon if n is nearly normal to it, and its edge that is most nearly normal to n, if one
    is."""
    edges = [b - a for a, b in zip(points, [*points[1:], points[0]], strict=True)]
    squares = [ca.dot(e, e) for e in edges]
    units = [e / ca.sqrt(ca.if_else(q > 0, q, 1)) for e, q in zip(edges, squares, strict=True)]
    first, second = units[0], units[1]
    normal = ca.cross(first, second)
    normal = normal / length(normal)
    along = ca.dot(normal, n)
    on_face = 1 - along * along < SNAP**2
    edge, least = SX.zeros(3), SX(SNAP)
    for e, q in zip(units, squares, strict=True):
        off = ca.if_else(q > 0, ca.fabs(ca.dot(e, n)), 1)
        edge, least = ca.if_else(off < least, e, edge), ca.fmin(off, least)
    return ca.if_else(on_face, first, 0), ca.if_else(on_face, second, 0), edge
