"""Sockets: cups that cylinders are put into."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.mesh.triangles import Mesh, lathe
from costate.collision.shapes.cylinder import Cylinder
from costate.collision.shapes.solid import Number, Part, Solid, sizes


@dataclass(frozen=True, eq=False)
class Socket(Solid):
    """An upright cup: a cylinder with a cylindrical bore from above; its frame is at the middle of the bore's mouth, z up."""

    bore: Number
    """Radius of the bore."""
    radius: Number
    """Radius of the outside."""
    depth: Number
    """Depth of the bore."""
    floor: Number
    """Thickness below the bore."""

    size_count = 4

    def distance(self, p: SX) -> SX:
        whole = self.depth + self.floor
        outside = Cylinder(self.radius, whole).distance(p + ca.vertcat(0, 0, whole / 2))
        # The bore goes on above the mouth, so that its wall has no lid.
        hole = Cylinder(self.bore, 2 * self.depth).distance(p)
        return ca.fmax(outside, -hole)

    @property
    def edge_height(self) -> Number:
        """Height of the bore's upper edge [m]."""
        return 0.0

    def wall_faces(self, lateral: SX, z: SX) -> list[tuple[SX, float, float]]:
        """Return the faces of the wall, each as if it went on for ever: signed distances of a point at a lateral distance and a
        height [m], and the normals' components towards the axis and upwards. A point is in the wall if all are below zero."""
        return [(self.bore - lateral, 1.0, 0.0), (z, 0.0, 1.0)]

    def parts(self) -> list[Part]:
        numbers = sizes(self)
        return [Part("socket " + " ".join(f"{x:g}" for x in numbers), lambda: socket_mesh(*numbers))]


def socket_mesh(bore: float, radius: float, depth: float, floor: float) -> Mesh:
    """Return the surface of a socket [m]."""
    bottom = -depth - floor
    return lathe([(0, -depth), (bore, -depth), (bore, 0), (radius, 0), (radius, bottom), (0, bottom)], 48)
