"""Capsules: cylinders with round ends."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.triangles import unit_cap, unit_tube
from costate.collision.shapes import rays
from costate.collision.shapes.convex import Convex, Flats, side_flats, sign
from costate.collision.shapes.solid import MassProperties, Number, Part, Points, length, sizes
from costate.model.transform import Transform


@dataclass(frozen=True, eq=False)
class Capsule(Convex):
    """A segment along z around the origin, with a radius."""

    radius: Number
    length: Number
    """Length of the segment: that of the capsule without its caps."""

    size_count = 2
    has_exact_distance = True
    is_round = False
    edge_axes = (2,)

    def distance(self, p: SX) -> SX:
        h = self.length / 2
        z = ca.fmin(ca.fmax(p[2], -h), h)
        return length(p - ca.vertcat(0, 0, z)) - self.radius

    def points(self) -> Points:
        return [(ca.vertcat(SX(0), SX(0), SX(s * self.length / 2)), self.radius) for s in (-1, 1)]

    @property
    def rounding(self) -> Number:
        return self.radius

    def support(self, d: SX) -> SX:
        return ca.vertcat(0, 0, sign(d[2]) * self.length / 2)

    def face(self, d: SX) -> list[SX]:
        return [ca.vertcat(0, 0, end * self.length / 2) for end in (-1, 1)]

    def flats(self, n: SX) -> Flats:
        return side_flats(n)

    def bounding_sphere(self) -> tuple[SX, SX]:
        return SX.zeros(3), SX(self.radius + self.length / 2)

    def bounding_box(self) -> tuple[SX, SX]:
        return SX.zeros(3), ca.vertcat(self.radius, self.radius, self.radius + self.length / 2)

    def interval(self, p: SX, d: SX) -> rays.Interval:
        side = rays.both(rays.ball(self.radius, p[:2], d[:2]), rays.between(rays.slab(2, self.length / 2), p, d))
        caps = [rays.ball(self.radius, p - end * self.length / 2 * rays.axis(2), d) for end in (-1, 1)]
        return rays.either([side, *caps])

    def mass_properties(self, mass: float) -> MassProperties:
        """Add a cylinder and two half balls, whose centres of mass are 3/8 r beyond its ends."""
        r, h = sizes(self)
        rod, caps = np.array([h, 4 / 3 * r]) / (h + 4 / 3 * r) * mass
        across = rod * (3 * r**2 + h**2) / 12 + caps * (0.4 * r**2 + h**2 / 4 + 3 / 8 * r * h)
        return None, np.diag([across, across, rod * r**2 / 2 + caps * 0.4 * r**2])

    def parts(self) -> list[Part]:
        """Return a tube and two caps, so that capsules of all sizes share two meshes."""
        r, h = sizes(self)
        turn = np.diag([1.0, -1.0, -1.0])
        ends = [Transform(translation=np.array([0, 0, h / 2])), Transform(turn, np.array([0, 0, -h / 2]))]
        return [Part("tube", unit_tube, (r, r, h)), *(Part("cap", unit_cap, r, end) for end in ends)]
