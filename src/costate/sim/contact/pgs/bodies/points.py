"""Contact points of free bodies: the numbers that the sweeps reads of them, and how a visit uses these.

    relative velocity at a point:  u = v_a + w_a x r_a - v_b - w_b x r_b
    an impulse p on a, -p on b:    v_a += p / m_a,  w_a += I_a^-1 (r_a x p),  and the opposite on b

The rows of a contact point (normal, two tangents) are the columns of D; A = D^T (M_a^-1 + M_b^-1) D couples them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT
from costate.collision.pairs import tangents
from costate.sim.contact.pgs.bodies.bodies import INERTIA, NV
from costate.sim.contact.pgs.law import BLOCK, block_numbers
from costate.sim.contact.pgs.visit import Visit

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

SYSTEM = 15 + BLOCK
"""Numbers of a contact point: D (9), r_a (3), r_b (3), BLOCK."""


@dataclass(frozen=True, eq=False)
class Side:
    """One of the bodies at a contact point, with how it answers to impulses there."""

    inertia: SX
    """Inverse mass and inertia (INERTIA,)."""
    arm: SX
    """Lever from the centre of mass to the surface, world axes (3,)."""

    def turned(self, p: SX) -> SX:
        """Return the change of the angular velocity by an impulse."""
        return self.spread @ ca.cross(self.arm, p)

    @property
    def spread(self) -> SX:
        """Inverse inertia, (3, 3)."""
        xx, xy, xz, yy, yz, zz = ca.vertsplit(self.inertia[1:])
        return ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))

    def coupling(self, d: SX, e: SX) -> SX:
        """Return the speed along d by a unit impulse along e."""
        return self.inertia[0] * ca.dot(d, e) + ca.dot(ca.cross(self.arm, d), self.turned(e))

    def speed(self, twist: SX) -> SX:
        """Return the velocity of the surface, (3,)."""
        return twist[:3] + ca.cross(twist[3:], self.arm)


def surfaces(point: SX) -> tuple[SX, SX, SX]:
    """Return the normal of a contact point (POINT,), and the places of both surfaces, (3,) each."""
    gap, at, normal = ca.vertsplit(point, [0, 1, 4, POINT])
    return normal, at + normal * (gap / 2), at - normal * (gap / 2)


def system_of(point: SX, a: SX, b: SX, cfm: float) -> SX:
    """Return the SYSTEM numbers of a contact point. a, b: centre of mass and INERTIA of the bodies."""
    normal, *places = surfaces(point)
    D = [normal, *tangents(normal)]
    sides = [Side(body[3:], at - body[:3]) for body, at in zip((a, b), places, strict=True)]
    A = SX(3, 3)
    for i in range(3):
        for j in range(i, 3):
            A[i, j] = A[j, i] = sum((s.coupling(D[i], D[j]) for s in sides), SX(0))
    return ca.vertcat(*D, sides[0].arm, sides[1].arm, block_numbers(A, cfm))


def rate_of(point: SX, a: SX, b: SX, twists: tuple[SX, SX]) -> SX:
    """Return the speed at which a contact point opens. a, b: centres of mass."""
    normal, *places = surfaces(point)
    u, v = (Side(SX(0), at - com).speed(x) for at, com, x in zip(places, (a, b), twists, strict=True))
    return ca.dot(normal, u - v)


class BodyVisit(Visit):
    """Visits of groups between free bodies; velocities are twists at the centres of mass, world axes."""

    def __init__(self, points: int, options: PGS):
        super().__init__(points, options, NV, SYSTEM)
        self.more = [SX.sym("ia", INERTIA), SX.sym("ib", INERTIA)]

    def _sides(self, k: int) -> tuple[Side, Side]:
        system = self.part(k)
        return Side(self.more[0], system[9:12]), Side(self.more[1], system[12:15])

    def _axes(self, k: int) -> SX:
        return ca.reshape(self.part(k)[:9], 3, 3)

    def speeds(self, k: int, moved: SX) -> SX:
        a, b = self._sides(k)
        return self._axes(k).T @ (a.speed(moved[:NV]) - b.speed(moved[NV:]))

    def pushed(self, k: int, moved: SX, impulse: SX) -> SX:
        p = self._axes(k) @ impulse
        change = [ca.vertcat(side.inertia[0] * p, side.turned(p)) for side in self._sides(k)]
        return moved + ca.vertcat(change[0], -change[1])

    def block(self, k: int) -> SX:
        return self.part(k)[15:]
