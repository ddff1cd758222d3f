"""Shapes as signed distances, and the points by which they touch others.

A distance is negative inside, exact outside for all but intersections and differences (where it is a lower bound), and its
gradient is the outward normal. Sizes are numbers or symbols. Derivatives are finite everywhere: square roots never see an exact
zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel.ir.program import Program
from costate.model.model import Shape, Transform

TINY = 1e-24
"""Under square roots [m^2]: less than rounding for lengths above a tenth of a millimetre, and large enough that second
derivatives at zero stay finite."""

Number = float | SX


class Solid(ABC):
    """A shape in its own frame."""

    @abstractmethod
    def distance(self, p: SX) -> SX:
        """Signed distance [m] of a point (3,) in the shape's frame."""

    def points(self) -> list[tuple[SX, Number]]:
        """Points (3,) with radii [m] that stand for the surface when it touches another shape; none for hollow or endless ones."""
        return []

    def normal(self, p: SX) -> SX:
        """Outward unit normal (3,) at a point."""
        x = SX.sym("x", 3)
        return ca.substitute(ca.gradient(self.distance(x), x), x, p)


def length(v: SX) -> SX:
    return ca.sqrt(ca.dot(v, v) + TINY)


def from_faces(out: SX) -> SX:
    """Signed distance of a solid whose faces are at right angles, from the distances to them (n,), negative inside. On a face
    the normal is the face's."""
    nearest = out[0]
    for k in range(1, out.numel()):
        nearest = ca.fmax(nearest, out[k])
    outside = nearest > 0
    # Where the root is not wanted its argument is one, so that no derivative is formed at zero.
    return ca.if_else(outside, length(ca.if_else(outside, ca.fmax(out, 0), 1)), nearest)


@dataclass(frozen=True, eq=False)
class Sphere(Solid):
    radius: Number

    def distance(self, p: SX) -> SX:
        return length(p) - self.radius

    def points(self) -> list[tuple[SX, Number]]:
        return [(SX.zeros(3), self.radius)]


@dataclass(frozen=True, eq=False)
class Box(Solid):
    size: SX
    """Edge lengths (3,)."""

    def distance(self, p: SX) -> SX:
        return from_faces(ca.fabs(p) - self.size / 2)

    def points(self) -> list[tuple[SX, Number]]:
        return [
            (ca.vertcat(*(s * h for s, h in zip(signs, ca.vertsplit(self.size / 2), strict=True))), 0.0)
            for signs in _CORNERS
        ]


_CORNERS = list(product((-1.0, 1.0), repeat=3))


@dataclass(frozen=True, eq=False)
class Capsule(Solid):
    radius: Number
    length: Number
    """Of the axis, along z, without caps."""

    def distance(self, p: SX) -> SX:
        h = self.length / 2
        z = ca.fmin(ca.fmax(p[2], -h), h)
        return length(p - ca.vertcat(0, 0, z)) - self.radius

    def points(self) -> list[tuple[SX, Number]]:
        return [(ca.vertcat(SX(0), SX(0), SX(s * self.length / 2)), self.radius) for s in (-1, 1)]


@dataclass(frozen=True, eq=False)
class Cylinder(Solid):
    radius: Number
    length: Number

    def distance(self, p: SX) -> SX:
        return from_faces(ca.vertcat(length(p[:2]) - self.radius, ca.fabs(p[2]) - self.length / 2))

    def points(self) -> list[tuple[SX, Number]]:
        rim = [(np.cos(a), np.sin(a)) for a in np.arange(4) * np.pi / 2]
        return [
            (ca.vertcat(SX(c * self.radius), SX(s * self.radius), SX(side * self.length / 2)), 0.0)
            for side in (-1, 1)
            for c, s in rim
        ]


@dataclass(frozen=True, eq=False)
class Ellipsoid(Solid):
    semi: SX
    """Semi-axes (3,)."""

    def distance(self, p: SX) -> SX:
        """Of first order near the surface, from the gradient of its quadric; contact does not use it."""
        inside, slope = length(p / self.semi), length(p / self.semi**2)
        return inside * (inside - 1) / slope


@dataclass(frozen=True, eq=False)
class Plane(Solid):
    """z = 0, solid below."""

    def distance(self, p: SX) -> SX:
        return p[2]


@dataclass(frozen=True, eq=False)
class Union(Solid):
    a: Solid
    b: Solid

    def distance(self, p: SX) -> SX:
        return ca.fmin(self.a.distance(p), self.b.distance(p))

    def points(self) -> list[tuple[SX, Number]]:
        return self.a.points() + self.b.points()


@dataclass(frozen=True, eq=False)
class Intersection(Solid):
    a: Solid
    b: Solid

    def distance(self, p: SX) -> SX:
        return ca.fmax(self.a.distance(p), self.b.distance(p))

    def points(self) -> list[tuple[SX, Number]]:
        return _kept(self.a.points(), self.b, 1) + _kept(self.b.points(), self.a, 1)


@dataclass(frozen=True, eq=False)
class Difference(Solid):
    """a without b."""

    a: Solid
    b: Solid

    def distance(self, p: SX) -> SX:
        return ca.fmax(self.a.distance(p), -self.b.distance(p))

    def points(self) -> list[tuple[SX, Number]]:
        return _kept(self.a.points(), self.b, -1) + _kept(self.b.points(), self.a, 1)


def _kept(points: list[tuple[SX, Number]], other: Solid, side: int) -> list[tuple[SX, Number]]:
    """Points (with their balls) inside (side 1) or outside (side -1) of another solid. Where sizes are symbols, a point that is cut
    away shrinks out of reach instead of being dropped."""
    kept = []
    for p, r in points:
        depth = ca.simplify(side * other.distance(p) + r)
        if not depth.is_constant():
            kept.append((p, ca.if_else(depth <= ON_SURFACE, r, r - FAR)))
        elif float(depth) <= ON_SURFACE:
            kept.append((p, r))
    return kept


FAR = 1e3
"""A distance nothing touches at [m]."""
ON_SURFACE = 1e-9
"""How far outside a point still belongs to a solid [m]."""


@dataclass(frozen=True, eq=False)
class Offset(Solid):
    """Grown by a distance: edges become round."""

    a: Solid
    by: Number

    def distance(self, p: SX) -> SX:
        return self.a.distance(p) - self.by

    def points(self) -> list[tuple[SX, Number]]:
        return [(x, r + self.by) for x, r in self.a.points()]


@dataclass(frozen=True, eq=False)
class Moved(Solid):
    """Another shape at a pose."""

    a: Solid
    pose: Transform

    def distance(self, p: SX) -> SX:
        return self.a.distance(SX(self.pose.rotation.T) @ (p - SX(self.pose.translation)))

    def points(self) -> list[tuple[SX, Number]]:
        return [(SX(self.pose.rotation) @ x + SX(self.pose.translation), r) for x, r in self.a.points()]


@dataclass(frozen=True, eq=False)
class Socket(Solid):
    """An upright cup: a cylinder with a cylindrical bore from above; its frame is at the middle of the bore's mouth, z up."""

    bore: Number
    """Radius of the bore."""
    radius: Number
    """Of the outside."""
    depth: Number
    """Of the bore."""
    floor: Number
    """Thickness below the bore."""

    def distance(self, p: SX) -> SX:
        whole = self.depth + self.floor
        outside = Cylinder(self.radius, whole).distance(p + ca.vertcat(0, 0, whole / 2))
        # The bore goes on above the mouth, so that its wall has no lid.
        hole = Cylinder(self.bore, 2 * self.depth).distance(p)
        return ca.fmax(outside, -hole)


def sizes(solid: Solid) -> list[float]:
    """All lengths a solid is made of, in the order of its fields, parts after parts [m]."""
    return [float(x) for x in np.array(ca.DM(size_symbols(solid))).ravel()]


class Field(Solid):
    """A solid known by sampled values, which only a program can look up (see field_pairs.py)."""

    key: str
    """Digest of the samples."""

    def distance(self, p: SX) -> SX:
        raise ValueError(f"{type(self).__name__} cannot be part of a composition: it is looked up by a program")

    @abstractmethod
    def lookup(self) -> Program:
        """(point (3,) in its frame, its sizes) -> (distance [m], unit normal (3,))."""


def is_field(solid: Solid) -> bool:
    return isinstance(solid, Field)


def _is_size(f: Any, value: Any) -> bool:
    """Whether a field of a solid is lengths, not a pose nor samples."""
    return not isinstance(value, Transform | np.ndarray) and f.name != "spacing"


def size_symbols(solid: Solid) -> SX:
    """The same lengths, as numbers or symbols, (n,)."""
    parts = [SX(0, 1)]
    for f in fields(solid):  # type: ignore[arg-type]
        value = getattr(solid, f.name)
        if isinstance(value, Solid):
            parts.append(size_symbols(value))
        elif _is_size(f, value):
            parts.append(ca.vec(SX(value)))
    return ca.vertcat(*parts)


def resized(solid: Solid, values: SX) -> Solid:
    """The same solid with other lengths, (n,) as `sizes` lists them."""
    changed: dict[str, Any] = {}
    at = 0
    for f in fields(solid):  # type: ignore[arg-type]
        value = getattr(solid, f.name)
        if not isinstance(value, Solid) and not _is_size(f, value):
            continue
        n = len(sizes(value)) if isinstance(value, Solid) else SX(value).numel()
        part = values[at : at + n]
        changed[f.name] = resized(value, part) if isinstance(value, Solid) else part
        at += n
    return replace(solid, **changed)  # type: ignore[type-var]


SOLIDS = {
    "sphere": lambda s: Sphere(s[0]),
    "ellipsoid": lambda s: Ellipsoid(s),
    "box": lambda s: Box(s),
    "cylinder": lambda s: Cylinder(s[0], s[1]),
    "capsule": lambda s: Capsule(s[0], s[1]),
    "plane": lambda s: Plane(),
    "socket": lambda s: Socket(s[0], s[1], s[2], s[3]),
}
"""Shape kind -> solid from its sizes."""


def plain_solid(shape: Shape) -> Solid:
    """The solid of a shape that is told by its sizes."""
    return SOLIDS[shape.kind](SX(np.asarray(shape.size, float)))
