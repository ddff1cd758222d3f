"""Contact points of free bodies: the numbers that the pairwise solver reads of them, and how a visit uses these.

    relative velocity at a point:  u = v_a + w_a x r_a - v_b - w_b x r_b
    an impulse p on a, -p on b:    v_a += p / m_a,  w_a += I_a^-1 (r_a x p),  and the opposite on b

The rows of a contact point (normal, two tangents) are the columns of D; D^T (M_a^-1 + M_b^-1) D couples them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT
from costate.collision.pairs import tangents
from costate.sim.contact.pgs.pairwise.bodies import INERTIA, NV, RECORD
from costate.sim.contact.pgs.pairwise.old_targets import target_of
from costate.sim.contact.pgs.pairwise.visit import COUPLES, Visit
from costate.sim.contact.rows import Row

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

SYSTEM = 21
"""Numbers of a contact point: D (9), r_a (3), r_b (3), couplings 01, 02, 12 of the rows, their steps (3)."""


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


@dataclass(frozen=True, eq=False)
class Prepared:
    """A contact point of a step, as the solver reads it."""

    system: SX
    c: SX
    """Speeds less targets J v_free - target, (3,)."""
    push: SX
    """Minus the speed that undoes overlap, (3,)."""
    rest: SX
    """Part of the step that is left after the impact."""
    gap: SX
    jump: SX | None = None
    """Speeds less targets at the velocity before the step, (3,), for explicit integration."""


def prepare(point: SX, a: SX, b: SX, restitution: SX, options: PGS, dt: float) -> Prepared:
    """Return the numbers of a contact point. point (POINT,): gap, point, normal; a, b (RECORD,): the bodies."""
    gap, at, normal = ca.vertsplit(point, [0, 1, 4, POINT])
    D = [normal, *tangents(normal)]
    sides, free, before = [], SX.zeros(3), SX.zeros(3)
    for record, sign in ((a, 1), (b, -1)):
        com, inertia, twist, old = ca.vertsplit(record, [0, 3, 3 + INERTIA, 3 + INERTIA + NV, RECORD])
        side = Side(inertia, at + normal * (sign * gap / 2) - com)
        sides.append(side)
        free, before = free + sign * side.speed(twist), before + sign * side.speed(old)
    steps = [1 / (sum((s.coupling(d, d) for s in sides), SX(0)) * (1 + options.cfm) + 1e-30) for d in D]
    coupled = [sum((s.coupling(D[i], D[j]) for s in sides), SX(0)) for i, j in COUPLES]
    row = Row("normal", SX(0), gap, bounces=True)
    speed = [ca.dot(d, free) for d in D]
    target, undo, rest = target_of(row, speed[0], ca.dot(normal, before), restitution, options, dt)
    system = ca.vertcat(*D, sides[0].arm, sides[1].arm, *coupled, *steps)
    return Prepared(system, ca.vertcat(speed[0] - target, *speed[1:]), ca.vertcat(-undo, 0, 0), rest, gap)


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

    def couplings(self, k: int) -> SX:
        return self.part(k)[15:18]

    def steps(self, k: int) -> SX:
        return self.part(k)[18:]
