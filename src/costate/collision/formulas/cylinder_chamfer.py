"""A cylinder in the bore of a chamfered socket, with its lower end (local -z) going down. The outside of the cup is not looked at.

In a plane through the cup's axis its material is where a point is behind the wall, behind the chamfer and below the upper face: the
intersection of three half planes, so that the largest of the three distances tells how far a point is outside.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.collision.contact_point import ContactPoint, Placed
from costate.collision.formulas.cylinder_socket import body_at_edge, face_on_cup, lateral_offset, lowest_beside
from costate.collision.shapes.chamfered_socket import ChamferedSocket
from costate.collision.shapes.cylinder import Cylinder


def cylinder_chamfer(a: Placed, b: Placed) -> list[ContactPoint]:
    """Return the rim's deepest point against wall, chamfer or upper face, the body against the bore's edge, and the lower face
    against floor and upper face of the cup."""
    assert isinstance(a.solid, Cylinder) and isinstance(b.solid, ChamferedSocket)
    cup, r = b.solid, a.solid.radius
    axis = b.rotation.T @ a.rotation[:, 2]
    low = b.to_local(a.to_world(ca.vertcat(0, 0, -a.solid.length / 2)))
    edge = body_at_edge(b, cup.bore, -cup.chamfer, low, axis, r)
    return [_rim(b, cup, low, axis, r), edge, *face_on_cup(b, cup, cup.bore + cup.chamfer, low, axis, r)]


def _rim(b: Placed, cup: ChamferedSocket, low: SX, axis: SX, r) -> ContactPoint:
    """Return the deepest point of the lower rim along its lateral offset."""
    u, offset = lateral_offset(low[:2])
    reach, z = lowest_beside(u, low, axis, r)
    wall, slope, face = cup.faces(offset + reach, z)
    on_wall = ca.logic_and(wall >= slope, wall >= face)
    on_face = ca.logic_and(face > slope, face > wall)
    inward, up = (
        ca.if_else(on_face, 0, ca.if_else(on_wall, 1, 0.5**0.5)),
        ca.if_else(on_face, 1, ca.if_else(on_wall, 0, 0.5**0.5)),
    )
    gap = ca.fmax(ca.fmax(wall, slope), face)
    point = ca.vertcat(u * (offset + reach), z)
    return ContactPoint(gap, b.to_world(point), b.rotation @ ca.vertcat(-inward * u, up))
