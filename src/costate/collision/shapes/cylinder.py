"""Cylinders."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.triangles import unit_cylinder
from costate.collision.shapes import rays
from costate.collision.shapes.convex import SNAP, Convex, Flats, across_z, side_flats, sign
from costate.collision.shapes.solid import MassProperties, Number, Part, Points, from_faces, length, sizes

RIM = 8
"""Corners of the polygon that stands for a round face."""


@dataclass(frozen=True, eq=False)
class Cylinder(Convex):
    """A cylinder along z around the origin."""

    radius: Number
    length: Number

    size_count = 2
    has_exact_distance = True
    edge_axes = (2,)

    def distance(self, p: SX) -> SX:
        return from_faces(ca.vertcat(length(p[:2]) - self.radius, ca.fabs(p[2]) - self.length / 2))

    def points(self) -> Points:
        rim = [(np.cos(a), np.sin(a)) for a in np.arange(4) * np.pi / 2]
        return [
            (ca.vertcat(SX(c * self.radius), SX(s * self.radius), SX(side * self.length / 2)), 0.0)
            for side in (-1, 1)
            for c, s in rim
        ]

    def inner(self) -> SX:
        return ca.fmin(self.radius, self.length / 2)

    def points_toward(self, d: SX) -> Points:
        return [(p, 0.0) for p in self.rims(d)]

    def rims(self, toward: SX, rotation: SX | None = None, position: SX | None = None) -> list[SX]:
        """Return four points of each rim, turned so that the one furthest along a direction is among them; of the cylinder at a
        pose, if one is given."""
        R, p = SX.eye(3) if rotation is None else rotation, SX.zeros(3) if position is None else position
        axis = R[:, 2]
        tilt = toward - ca.dot(toward, axis) * axis + 1e-9 * R[:, 0]  # along the axis: any direction will do
        down = tilt / length(tilt)
        side = ca.cross(axis, down)
        ends = [p + axis * (end * self.length / 2) for end in (-1, 1)]
        return [end + direction * self.radius for end in ends for direction in (down, side, -down, -side)]

    def support(self, d: SX) -> SX:
        return ca.vertcat(self.radius * d[:2] / length(d[:2]), sign(d[2]) * self.length / 2)

    def face(self, d: SX) -> list[SX]:
        """Return an end, as a polygon with a corner at its furthest point; or the line of the side, each end of it several
        times."""
        u, across = across_z(d)
        flat = d[2] ** 2 > ca.dot(d[:2], d[:2])
        points = []
        for k in range(RIM):
            angle = 2 * np.pi * k / RIM
            end = ca.vertcat(self.radius * (np.cos(angle) * u + np.sin(angle) * across), sign(d[2]) * self.length / 2)
            side = ca.vertcat(self.radius * u, (-1 if k < RIM // 2 else 1) * self.length / 2)
            points.append(ca.if_else(flat, end, side))
        return points

    def flats(self, n: SX) -> Flats:
        on_end = ca.dot(n[:2], n[:2]) < SNAP**2
        return ca.vertcat(on_end, 0, 0), ca.vertcat(0, on_end, 0), side_flats(n)[2]

    def face_normals(self, p: SX) -> list[SX]:
        """Return those of both ends, and of the side next to the point."""
        return [SX([0, 0, -1]), SX([0, 0, 1]), ca.vertcat(across_z(p)[0], 0)]

    def bounding_sphere(self) -> tuple[SX, SX]:
        return SX.zeros(3), SX(ca.sqrt(self.radius**2 + self.length**2 / 4))

    def bounding_box(self) -> tuple[SX, SX]:
        return SX.zeros(3), ca.vertcat(self.radius, self.radius, self.length / 2)

    def interval(self, p: SX, d: SX) -> rays.Interval:
        return rays.both(rays.ball(self.radius, p[:2], d[:2]), rays.between(rays.slab(2, self.length / 2), p, d))

    def mass_properties(self, mass: float) -> MassProperties:
        r, h = sizes(self)
        return None, np.diag(mass * np.array([(3 * r**2 + h**2) / 12] * 2 + [r**2 / 2]))

    def parts(self) -> list[Part]:
        r, h = sizes(self)
        return [Part("cylinder", unit_cylinder, (r, r, h))]
