"""Places where bodies touch, as a mapped solver reads them, and what a sweep does at some of them.

    relative velocity at a place:  u = v_a + w_a x r_a - v_b - w_b x r_b
    an impulse p on a, -p on b:    v_a += p / m_a,  w_a += I_a^-1 (r_a x p),  and the opposite on b

The rows of a place (normal, two tangents) are the columns of D; D^T (M_a^-1 + M_b^-1) D couples them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.collision.narrow import POINT
from costate.collision.pairs import tangents
from costate.sim.contact.pgs.pairwise.bodies import INERTIA, NV, RECORD
from costate.sim.contact.pgs.sweep import blocks, projected
from costate.sim.contact.pgs.targets import target_of
from costate.sim.contact.rows import Row

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

SYSTEM = 21
"""Numbers of a place: D (9), r_a (3), r_b (3), couplings 01, 02, 12 of the rows, their steps (3)."""
COUPLES = {(0, 1): 0, (0, 2): 1, (1, 2): 2}


@dataclass(frozen=True, eq=False)
class Side:
    """One of the bodies at a place: how it answers to impulses there."""

    inertia: SX
    """(INERTIA,)."""
    arm: SX
    """From the centre of mass to its surface, world axes (3,)."""

    def turned(self, p: SX) -> SX:
        """Change of the angular velocity by an impulse."""
        return self.spread @ ca.cross(self.arm, p)

    @property
    def spread(self) -> SX:
        """Inverse inertia, (3, 3)."""
        xx, xy, xz, yy, yz, zz = ca.vertsplit(self.inertia[1:])
        return ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))

    def coupling(self, d: SX, e: SX) -> SX:
        """Speed along d by a unit impulse along e."""
        return self.inertia[0] * ca.dot(d, e) + ca.dot(ca.cross(self.arm, d), self.turned(e))

    def speed(self, twist: SX) -> SX:
        return twist[:3] + ca.cross(twist[3:], self.arm)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A place of a step: what the solver reads."""

    system: SX
    c: SX
    """J v_free - target, (3,)."""
    push: SX
    """Minus the speed that undoes overlap, (3,)."""
    rest: SX
    """Part of the step that is left after the impact."""
    gap: SX


def prepare(place: SX, a: SX, b: SX, restitution: SX, options: PGS, dt: float) -> Prepared:
    """place (POINT,): gap, point, normal; a, b (RECORD,): the bodies."""
    gap, point, normal = ca.vertsplit(place, [0, 1, 4, POINT])
    D = [normal, *tangents(normal)]
    sides, free, before = [], SX.zeros(3), SX.zeros(3)
    for record, sign in ((a, 1), (b, -1)):
        com, inertia, twist, old = ca.vertsplit(record, [0, 3, 3 + INERTIA, 3 + INERTIA + NV, RECORD])
        side = Side(inertia, point + normal * (sign * gap / 2) - com)
        sides.append(side)
        free, before = free + sign * side.speed(twist), before + sign * side.speed(old)
    steps = [1 / (sum((s.coupling(d, d) for s in sides), SX(0)) * (1 + options.cfm) + 1e-30) for d in D]
    coupled = [sum((s.coupling(D[i], D[j]) for s in sides), SX(0)) for i, j in COUPLES]
    row = Row("normal", SX(0), gap, bounces=True)
    speed = [ca.dot(d, free) for d in D]
    target, undo, rest = target_of(row, speed[0], ca.dot(normal, before), restitution, options, dt)
    system = ca.vertcat(*D, sides[0].arm, sides[1].arm, *coupled, *steps)
    return Prepared(system, ca.vertcat(speed[0] - target, *speed[1:]), ca.vertcat(-undo, 0, 0), rest, gap)


class Visit:
    """What a sweep does at some places of one pair of bodies."""

    def __init__(self, places: int, options: PGS):
        self.places, self.options = places, options
        self.moved, self.impulse = SX.sym("moved", 2 * NV), SX.sym("lambda", 3 * places)
        self.system, self.c = SX.sym("system", SYSTEM * places), SX.sym("c", 3 * places)
        self.bound, self.inertia = SX.sym("mu"), (SX.sym("ia", INERTIA), SX.sym("ib", INERTIA))

    def sweep(self, watch: bool = False) -> ca.Function:
        """(twists of a and b (12), impulses, [worst], system, c, friction, inertias) -> (twists, impulses, [worst]).

        watch: The largest speed by which a row was changed is carried along.
        """
        twist, worst, found = self.moved, SX.sym("worst"), []
        most = worst
        for k in range(self.places):
            impulse, step = self._of(self.impulse, k, 3), self._step(k)
            new = self._rows(k, twist, impulse, step)
            change = new - impulse
            most = ca.fmax(most, ca.mmax(ca.fabs(change) / step))
            twist = self._pushed(k, twist, change)
            found.append(new)
        reads = [self.system, self.c, self.bound, *self.inertia]
        states, after = [self.moved, self.impulse], [twist, ca.vertcat(*found)]
        if watch:
            states, after = [*states, worst], [*after, most]
        return ca.Function("sweep", [*states, *reads], after)

    def apply(self, weighted: bool = False) -> ca.Function:
        """(twists, impulses, system, inertias, [weights]) -> twists, with the impulses (times weights, one per place) applied."""
        weights, twist = SX.sym("weights", self.places), self.moved
        for k in range(self.places):
            impulse = self._of(self.impulse, k, 3)
            twist = self._pushed(k, twist, weights[k] * impulse if weighted else impulse)
        inputs = [self.moved, self.impulse, self.system, *self.inertia, *([weights] if weighted else [])]
        return ca.Function("apply", inputs, [twist])

    def _of(self, x: SX, k: int, n: int) -> SX:
        return x[n * k : n * (k + 1)]

    def _step(self, k: int) -> SX:
        return self._of(self.system, k, SYSTEM)[18:]

    def _sides(self, k: int) -> tuple[Side, Side]:
        system = self._of(self.system, k, SYSTEM)
        return Side(self.inertia[0], system[9:12]), Side(self.inertia[1], system[12:15])

    def _rows(self, k: int, twist: SX, impulse: SX, step: SX) -> SX:
        """Impulses of a place after each of its rows was solved in turn."""
        system, (a, b) = self._of(self.system, k, SYSTEM), self._sides(k)
        D = ca.reshape(system[:9], 3, 3)
        speed = list(ca.vertsplit(D.T @ (a.speed(twist[:NV]) - b.speed(twist[NV:])) + self._of(self.c, k, 3)))
        now = list(ca.vertsplit(impulse))
        bounds = ca.vertcat(0, self.bound, self.bound)
        for block in blocks(ROWS, self.options):
            # A[k, k] step[k] = 1 / (1 + cfm): what a row itself has added to the speed is taken out again.
            aims = [now[i] / (1 + self.options.cfm) - speed[i] * step[i] for i in block]
            for i, new in zip(block, projected(ROWS, block, aims, now, step, bounds), strict=True):
                for j in range(i + 1, 3):
                    speed[j] = speed[j] + system[15 + COUPLES[i, j]] * (new - impulse[i])
                now[i] = new
        return ca.vertcat(*now)

    def _pushed(self, k: int, twist: SX, impulse: SX) -> SX:
        p = ca.reshape(self._of(self.system, k, SYSTEM)[:9], 3, 3) @ impulse
        change = [ca.vertcat(side.inertia[0] * p, side.turned(p)) for side in self._sides(k)]
        return twist + ca.vertcat(change[0], -change[1])


ROWS = [Row("normal", SX(0), SX(0)), *(Row("tangent", SX(0), SX(0), 0, SX(1)) for _ in range(2))]
"""Of a place."""
