"""Boxes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Self

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.triangles import unit_box
from costate.collision.shapes import rays
from costate.collision.shapes.convex import Convex, Flats, polygon_flats, sign
from costate.collision.shapes.solid import MassProperties, Part, Points, from_faces, length, sizes

_CORNERS = list(product((-1.0, 1.0), repeat=3))


@dataclass(frozen=True, eq=False)
class Box(Convex):
    """A box around the origin, along the axes."""

    size: SX
    """Edge lengths (3,)."""

    size_count = 3
    has_exact_distance = True
    is_round = False
    edge_axes = (0, 1, 2)

    @classmethod
    def of_sizes(cls, sizes: SX) -> Self:
        return cls(sizes)

    def distance(self, p: SX) -> SX:
        return from_faces(ca.fabs(p) - self.size / 2)

    def points(self) -> Points:
        return [
            (ca.vertcat(*(s * h for s, h in zip(signs, ca.vertsplit(self.size / 2), strict=True))), 0.0)
            for signs in _CORNERS
        ]

    def support(self, d: SX) -> SX:
        return ca.if_else(d < 0, -1, 1) * self.size / 2

    def face(self, d: SX) -> list[SX]:
        """Return the face of the axis with the largest component; ties go to the first."""
        h, a = self.size / 2, ca.fabs(d)
        on_x = ca.logic_and(a[0] >= a[1], a[0] >= a[2])
        on_y = ca.logic_and(ca.logic_not(on_x), a[1] >= a[2])
        points = []
        for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
            x = ca.vertcat(sign(d[0]) * h[0], i * h[1], j * h[2])
            y = ca.vertcat(i * h[0], sign(d[1]) * h[1], j * h[2])
            z = ca.vertcat(i * h[0], j * h[1], sign(d[2]) * h[2])
            points.append(ca.if_else(on_x, x, ca.if_else(on_y, y, z)))
        return points

    def flats(self, n: SX) -> Flats:
        return polygon_flats(self.face(n), n)

    def face_normals(self, p: SX) -> list[SX]:
        return [SX(side * np.eye(3)[k]) for k in range(3) for side in (-1, 1)]

    def bounding_sphere(self) -> tuple[SX, SX]:
        return SX.zeros(3), length(self.size) / 2

    def bounding_box(self) -> tuple[SX, SX]:
        return SX.zeros(3), self.size / 2

    def interval(self, p: SX, d: SX) -> rays.Interval:
        half = self.size / 2
        return rays.between([side for k in range(3) for side in rays.slab(k, half[k])], p, d)

    def mass_properties(self, mass: float) -> MassProperties:
        s = np.array(sizes(self))
        return None, np.diag(mass / 12 * (np.sum(s**2) - s**2))

    def parts(self) -> list[Part]:
        return [Part("box", unit_box, sizes(self))]
