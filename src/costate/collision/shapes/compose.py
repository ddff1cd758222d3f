"""Solids that are made of others: unions, intersections, differences, grown and moved ones."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.shapes.rays import FAR
from costate.collision.shapes.solid import Number, Points, Solid
from costate.model.transform import Transform

ON_SURFACE = 1e-9
"""Distance outside at which a point still belongs to a solid [m]."""


@dataclass(frozen=True, eq=False)
class Union(Solid):
    """Everything that is in a or in b."""

    a: Solid
    b: Solid

    def distance(self, p: SX) -> SX:
        return ca.fmin(self.a.distance(p), self.b.distance(p))

    def points(self) -> Points:
        return self.a.points() + self.b.points()

    def ray_distance(self, p: SX, d: SX) -> SX:
        return ca.fmin(self.a.ray_distance(p, d), self.b.ray_distance(p, d))


@dataclass(frozen=True, eq=False)
class Intersection(Solid):
    """Everything that is in a and in b."""

    a: Solid
    b: Solid

    def distance(self, p: SX) -> SX:
        return ca.fmax(self.a.distance(p), self.b.distance(p))

    def points(self) -> Points:
        return _kept(self.a.points(), self.b, 1) + _kept(self.b.points(), self.a, 1)


@dataclass(frozen=True, eq=False)
class Difference(Solid):
    """Everything that is in a but not in b."""

    a: Solid
    b: Solid

    def distance(self, p: SX) -> SX:
        return ca.fmax(self.a.distance(p), -self.b.distance(p))

    def points(self) -> Points:
        return _kept(self.a.points(), self.b, -1) + _kept(self.b.points(), self.a, 1)


def _kept(points: Points, other: Solid, side: int) -> Points:
    """Return the points (with their balls) inside (side 1) or outside (side -1) of another solid. Where sizes are symbols, a point
    that is cut away shrinks out of reach instead of being dropped."""
    kept: Points = []
    for p, r in points:
        depth = ca.simplify(side * other.distance(p) + r)
        if not depth.is_constant():
            kept.append((p, ca.if_else(depth <= ON_SURFACE, r, r - FAR)))
        elif float(depth) <= ON_SURFACE:
            kept.append((p, r))
    return kept


@dataclass(frozen=True, eq=False)
class Offset(Solid):
    """A solid grown by a distance: edges become round."""

    a: Solid
    by: Number

    def distance(self, p: SX) -> SX:
        return self.a.distance(p) - self.by

    def points(self) -> Points:
        return [(x, r + self.by) for x, r in self.a.points()]


@dataclass(frozen=True, eq=False)
class Moved(Solid):
    """A solid at a pose."""

    a: Solid
    pose: Transform

    def distance(self, p: SX) -> SX:
        return self.a.distance(SX(self.pose.rotation.T) @ (p - SX(self.pose.translation)))

    def points(self) -> Points:
        return [(SX(self.pose.rotation) @ x + SX(self.pose.translation), r) for x, r in self.a.points()]

    def ray_distance(self, p: SX, d: SX) -> SX:
        R = SX(self.pose.rotation)
        return self.a.ray_distance(R.T @ (p - SX(self.pose.translation)), R.T @ d)
