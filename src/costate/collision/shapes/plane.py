"""Planes."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.mesh.triangles import unit_box
from costate.collision.shapes import rays
from costate.collision.shapes.solid import Part, Solid
from costate.model.transform import Transform

SLAB = 4.0
"""Edge of the square that is drawn for a plane which is not the ground [m]."""


@dataclass(frozen=True, eq=False)
class Plane(Solid):
    """Everything below z = 0."""

    facing = SX([0, 0, 1])

    def distance(self, p: SX) -> SX:
        return p[2]

    def interval(self, p: SX, d: SX) -> rays.Interval:
        """Return where a ray goes through the surface, which is seen from above alone."""
        down = d[2] < -rays.PARALLEL
        at = ca.if_else(down, -p[2] / ca.if_else(down, d[2], -1), -1)
        return at, at

    def parts(self) -> list[Part]:
        below = Transform(translation=np.array([0, 0, -0.005]))
        return [Part("box", unit_box, (SLAB, SLAB, 0.01), below)]
