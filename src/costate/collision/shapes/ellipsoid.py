"""Ellipsoids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.triangles import unit_sphere
from costate.collision.shapes import rays
from costate.collision.shapes.convex import Convex
from costate.collision.shapes.solid import MassProperties, Part, Points, length, sizes


@dataclass(frozen=True, eq=False)
class Ellipsoid(Convex):
    """An ellipsoid around the origin, along the axes."""

    semi: SX
    """Semi-axes (3,)."""

    size_count = 3

    @classmethod
    def of_sizes(cls, sizes: SX) -> Self:
        return cls(sizes)

    def distance(self, p: SX) -> SX:
        """Return the distance to first order near the surface, from the gradient of its quadric; contact does not use it."""
        inside, slope = length(p / self.semi), length(p / self.semi**2)
        return inside * (inside - 1) / slope

    def points_toward(self, d: SX) -> Points:
        return [(self.support(d), 0.0)]

    def support(self, d: SX) -> SX:
        stretched = self.semi * d
        return self.semi * stretched / length(stretched)

    def bounding_sphere(self) -> tuple[SX, SX]:
        return SX.zeros(3), ca.mmax(self.semi)

    def bounding_box(self) -> tuple[SX, SX]:
        return SX.zeros(3), self.semi

    def interval(self, p: SX, d: SX) -> rays.Interval:
        return rays.ball(1, p / self.semi, d / self.semi)

    def mass_properties(self, mass: float) -> MassProperties:
        s = np.array(sizes(self))
        return None, np.diag(mass / 5 * (np.sum(s**2) - s**2))

    def parts(self) -> list[Part]:
        return [Part("sphere", unit_sphere, sizes(self))]
