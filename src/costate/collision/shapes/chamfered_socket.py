"""Chamfered sockets: cups with a chamfer at the mouth, which catches cylinders that come down beside the bore."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.mesh.triangles import Mesh, lathe
from costate.collision.shapes.socket import Socket
from costate.collision.shapes.solid import Number, Part, sizes


@dataclass(frozen=True, eq=False)
class ChamferedSocket(Socket):
    """A socket whose mouth widens at 45 degrees."""

    chamfer: Number
    """Width and height of the chamfer."""

    size_count = 5

    def distance(self, p: SX) -> SX:
        return ca.fmax(super().distance(p), self.faces(ca.norm_2(p[:2] + 1e-12), p[2])[1])

    def faces(self, lateral: SX, z: SX) -> tuple[SX, SX, SX]:
        """Return signed distances of a point at a lateral distance and a height [m] from the wall, from the chamfer and from the
        upper face, each as if it went on for ever: the point is in the material if all are below zero."""
        beyond = self.bore - lateral
        return beyond, (beyond + self.chamfer + z) / 2**0.5, z

    def parts(self) -> list[Part]:
        numbers = sizes(self)
        name = "chamfered_socket " + " ".join(f"{x:g}" for x in numbers)
        return [Part(name, lambda: chamfered_mesh(*numbers))]


def chamfered_mesh(bore: float, radius: float, depth: float, floor: float, chamfer: float) -> Mesh:
    """Return the surface of a chamfered socket [m]."""
    bottom, wide = -depth - floor, bore + chamfer
    inside = [(0, -depth), (bore, -depth), (bore, -chamfer), (wide, 0)]
    return lathe([*inside, (radius, 0), (radius, bottom), (0, bottom)], 48)
