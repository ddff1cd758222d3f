"""Balls."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.triangles import unit_sphere
from costate.collision.shapes import rays
from costate.collision.shapes.convex import Convex
from costate.collision.shapes.solid import MassProperties, Number, Part, Points, length, sizes


@dataclass(frozen=True, eq=False)
class Sphere(Convex):
    """A ball around the origin: a point with a radius."""

    radius: Number

    size_count = 1
    is_ball = True
    has_exact_distance = True
    is_round = False

    def distance(self, p: SX) -> SX:
        return length(p) - self.radius

    def points(self) -> Points:
        return [(SX.zeros(3), self.radius)]

    @property
    def rounding(self) -> Number:
        return self.radius

    def support(self, d: SX) -> SX:
        return SX.zeros(3)

    def bounding_sphere(self) -> tuple[SX, SX]:
        return SX.zeros(3), SX(self.radius)

    def bounding_box(self) -> tuple[SX, SX]:
        return SX.zeros(3), ca.repmat(SX(self.radius), 3, 1)

    def interval(self, p: SX, d: SX) -> rays.Interval:
        return rays.ball(self.radius, p, d)

    def mass_properties(self, mass: float) -> MassProperties:
        (r,) = sizes(self)
        return None, np.diag(np.full(3, 0.4 * mass * r**2))

    def parts(self) -> list[Part]:
        return [Part("sphere", unit_sphere, sizes(self)[0])]
