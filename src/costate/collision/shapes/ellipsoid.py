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

NEWTON = 10
"""Steps to the nearest point."""
BESIDE = 1e-9
"""Distance from a plane of symmetry at which the nearest point is looked for [m]."""


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
        normal, x = self._nearest(p)
        return ca.dot(normal, p - x)

    def normal(self, p: SX) -> SX:
        return self._nearest(p)[0]

    def _nearest(self, p: SX) -> tuple[SX, SX]:
        """Return the nearest point x of the surface, (3,), behind its normal. It has x_i = s_i^2 p_i / (s_i^2 + t), where t is the
        root of sum (s_i p_i / (s_i^2 + t))^2 - 1, which falls and is convex: from below, Newton's method does not pass it."""
        p = p + ca.if_else(p < 0, -BESIDE, BESIDE)  # in a plane of symmetry the nearest point may be on either side
        longer = self.semi**2 - ca.mmin(self.semi) ** 2  # t is counted from the pole of the shortest axis
        t = ca.mmax(self.semi * ca.fabs(p) - longer)
        for _ in range(NEWTON):
            ratio = self.semi * p / (longer + t)
            t = t + (ca.dot(ratio, ratio) - 1) / (2 * ca.dot(ratio, ratio / (longer + t)))
        ratio = self.semi * p / (longer + t)
        normal = ratio / self.semi
        return normal / length(normal), self.semi * ratio

    def points_toward(self, d: SX) -> Points:
        return [(self.support(d), 0.0)]

    def support(self, d: SX) -> SX:
        stretched = self.semi * d
        return self.semi * stretched / length(stretched)

    def inner(self) -> SX:
        return ca.mmin(self.semi)

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
