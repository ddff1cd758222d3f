"""Chamfered sockets: cups with a chamfer at the mouth, which catches cylinders that come down beside the bore."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.mesh.triangles import Mesh, lathe
from costate.collision.shapes.socket import Socket
from costate.collision.shapes.solid import Number, Part, length, sizes


@dataclass(frozen=True, eq=False)
class ChamferedSocket(Socket):
    """A socket whose mouth widens at 45 degrees."""

    chamfer: Number
    """Width and height of the chamfer."""

    size_count = 5

    def distance(self, p: SX) -> SX:
        return ca.fmax(super().distance(p), self._chamfer(length(p[:2]), p[2]))

    @property
    def edge_height(self) -> Number:
        return -self.chamfer

    def wall_faces(self, lateral: SX, z: SX) -> list[tuple[SX, float, float]]:
        return [*super().wall_faces(lateral, z), (self._chamfer(lateral, z), 0.5**0.5, 0.5**0.5)]

    def _chamfer(self, lateral: SX, z: SX) -> SX:
        return (self.bore + self.chamfer - lateral + z) / 2**0.5

    def parts(self) -> list[Part]:
        numbers = sizes(self)
        name = "chamfered_socket " + " ".join(f"{x:g}" for x in numbers)
        return [Part(name, lambda: chamfered_mesh(*numbers))]


def chamfered_mesh(bore: float, radius: float, depth: float, floor: float, chamfer: float) -> Mesh:
    """Return the surface of a chamfered socket [m]."""
    bottom, wide = -depth - floor, bore + chamfer
    inside = [(0, -depth), (bore, -depth), (bore, -chamfer), (wide, 0)]
    return lathe([*inside, (radius, 0), (radius, bottom), (0, bottom)], 48)
