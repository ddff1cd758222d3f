"""The visits of walks to the contact points of one group, for any storage of velocities.

The two sides of a group are carriers: free bodies, or trees of links. A visit reads velocities of both: as they are, or how they
have changed so far (`moved`). A visit of a sweep solves the contact points of the group in turn, each by its law, and changes
`moved` by the new impulses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.sim.contact.pgs.law import contact_law, mobility, own_change
from costate.sim.contact.pgs.targets import FAR, Motion, target_of
from costate.sim.contact.pgs.times import meeting

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS


class Visit(ABC):
    """The functions of walks over groups of contact points. Their last inputs are `more`."""

    more: list[SX]
    """Further numbers of a group that its storage reads."""

    def __init__(self, points: int, options: PGS, width: int, system: int):
        """Make the symbols of a visit. width: velocities per carrier; system: numbers per contact point."""
        self.points, self.options, self.width, self._system = points, options, width, system
        self.moved, self.impulse = SX.sym("moved", 2 * width), SX.sym("lambda", 3 * points)
        self.system, self.c = SX.sym("system", system * points), SX.sym("c", 3 * points)
        self.bound = SX.sym("mu")
        self.gap, self.marks, self.touches = (SX.sym(name, points) for name in ("gap", "marks", "touches"))
        self.clock = SX.sym("clock", 2)

    # --- what depends on the storage ------------------------------------------------------------------------------

    @abstractmethod
    def speeds(self, k: int, moved: SX) -> SX:
        """Return the speeds along the rows of a contact point, (3,)."""

    @abstractmethod
    def pushed(self, k: int, moved: SX, impulse: SX) -> SX:
        """Return `moved` after impulses along the rows of a contact point."""

    @abstractmethod
    def block(self, k: int) -> SX:
        """Return the numbers that the law of a contact point reads, (BLOCK,)."""

    def ease(self, k: int) -> SX:
        """Return the mobility of a contact point along its normal, as a part of that in all directions."""
        A = self.block(k)
        return A[0] / (A[0] + A[3] + A[5])

    def of_hits(self, k: int, x: SX) -> SX:
        """Return x where a contact point can close, 0 where its first row is another kind of bound."""
        return x

    def bounce(self, k: int, restitution: SX) -> SX:
        """Return the restitution of a contact point."""
        return restitution

    def law(self, k: int, u: SX, old: SX, impact: bool) -> SX:
        """Return the impulses of a contact point. u: its speeds without them; old: those of the last visit."""
        return contact_law(u, self.block(k), old, self.bound, self.options.cone)

    def part(self, k: int) -> SX:
        """Return the numbers of one contact point."""
        return self.system[self._system * k : self._system * (k + 1)]

    def _each(self, x: SX) -> list[SX]:
        return ca.vertsplit(x, 3)

    def _function(self, inputs: Sequence[SX], outputs: Sequence[SX]) -> ca.Function:
        return ca.Function("visit", [*inputs, *self.more], [ca.densify(x) for x in outputs])

    # --- sweeps ---------------------------------------------------------------------------------------------------

    def sweep(self, watch: bool = False, impact: bool = False) -> ca.Function:
        """Return (moved, impulses, [worst], system, c, friction) -> (moved, impulses, [worst]).

        watch: Carry the largest speed by which a row was changed along.
        """
        moved, worst, found = self.moved, SX.sym("worst"), []
        most = worst
        for k, (impulse, c) in enumerate(zip(self._each(self.impulse), self._each(self.c), strict=True)):
            u = self.speeds(k, moved) + c - own_change(self.block(k), impulse)
            new = self.law(k, u, impulse, impact)
            most = ca.fmax(most, ca.mmax(ca.fabs(new - impulse) * self._mobilities(k)))
            moved = self.pushed(k, moved, new - impulse)
            found.append(new)
        states, after = [self.moved, self.impulse], [moved, ca.vertcat(*found)]
        if watch:
            states, after = [*states, worst], [*after, most]
        return self._function([*states, self.system, self.c, self.bound], after)

    def _mobilities(self, k: int) -> SX:
        A = self.block(k)
        reference = A[0] + A[3] + A[5]
        return ca.vertcat(A[12], *(mobility(A[i], reference, self.options.cfm) for i in (3, 5)))

    def apply(self) -> ca.Function:
        """Return (moved, impulses, system) -> moved by the impulses."""
        moved = self.moved
        for k, impulse in enumerate(self._each(self.impulse)):
            moved = self.pushed(k, moved, impulse)
        return self._function([self.moved, self.impulse, self.system], [moved])

    # --- motions --------------------------------------------------------------------------------------------------

    def aims(self, dt: float, split: bool, explicit: bool) -> ca.Function:
        """Return (now, free, gap, marks, clock, reach, system) -> (waits, near, waiting, c, [push], [jump]): points that wait for
        an impact; whether the group is within reach, and waits; right-hand sides of the sweeps of a motion.

        now, free: velocities of both carriers at the start, and at the end without impulses; split: add the side of split
        corrections; explicit: add that of positions which move with the velocity of the start.
        """
        now, free, reach = SX.sym("now", 2 * self.width), SX.sym("free", 2 * self.width), SX.sym("reach")
        motion = self._motion(dt)
        columns: list[list[SX]] = [[] for _ in range(4)]
        for k in range(self.points):
            before, speed = self.speeds(k, now), self.speeds(k, free)
            aim = target_of(self.gap[k], self.marks[k], (before[0], speed[0]), self.ease(k), motion, self.options)
            waits, target = self.of_hits(k, aim.waits), self.of_hits(k, aim.speed)
            sides = [ca.vertcat(u[0] - target, u[1:]) for u in (speed, before)]
            push = ca.vertcat(-self.of_hits(k, aim.undo), 0, 0)
            for column, value in zip(columns, (waits, sides[0], push, sides[1]), strict=True):
                column.append(value)
        waits, c, push, jump = (ca.vertcat(*column) for column in columns)
        rows = [c, *([push] if split else []), *([jump] if explicit else [])]
        inputs = [now, free, self.gap, self.marks, self.clock, reach, self.system]
        return self._function(inputs, [waits, ca.mmin(self.gap) < reach, ca.mmax(waits), *rows])

    def first_meeting(self) -> ca.Function:
        """Return (tau, base, slope, gap, waits, clock, system) -> tau, or an earlier time at which a point closes."""
        base, slope, waits = (
            SX.sym(n, m) for n, m in (("b", 2 * self.width), ("s", 2 * self.width), ("w", self.points))
        )
        given = tau = SX.sym("tau")
        for k in range(self.points):
            u, a = self.speeds(k, base)[0], self.speeds(k, slope)[0]
            tau = ca.fmin(tau, meeting(self.gap[k], u, a, waits[k], self.clock[0]))
        return self._function([given, base, slope, self.gap, waits, self.clock, self.system], [tau])

    # --- impacts --------------------------------------------------------------------------------------------------

    def touch(self, dt: float) -> ca.Function:
        """Return (now, gap, marks, clock, system) -> (touches, flag, number that strike): which points touch, whether some do, and
        of how many the impact is now."""
        now, touches, number = SX.sym("now", 2 * self.width), [], SX(0)
        for k in range(self.points):
            u = self.speeds(k, now)[0]
            aim = target_of(self.gap[k], self.marks[k], (u, u), self.ease(k), self._motion(dt), self.options)
            touches.append(self.of_hits(k, aim.touches))
            number += self.of_hits(k, aim.strikes)
        found = ca.vertcat(*touches)
        inputs = [now, self.gap, self.marks, self.clock, self.system]
        return self._function(inputs, [found, ca.mmax(found), number])

    def _motion(self, dt: float) -> Motion:
        return Motion(self.clock[0], dt, self.clock[1] >= 2 * (self.options.impacts or 0))

    def still_strikes(self) -> ca.Function:
        """Return (now, touches, system) -> number of points that touch and approach fast."""
        fast = [self._fast(self.touches[k], self.speeds(k, self.moved)) for k in range(self.points)]
        return self._function([self.moved, self.touches, self.system], [sum(fast, SX(0))])

    def strike(self) -> ca.Function:
        """Return (now, touches, restitution, system) -> (speeds, c): the right-hand side of the sweeps of a round."""
        restitution, speeds, sides = SX.sym("restitution"), [], []
        for k in range(self.points):
            u = self.speeds(k, self.moved)
            strikes = ca.if_else(restitution > 0, self._fast(self.touches[k], u), self.touches[k])
            bounced = u[0] + self.bounce(k, restitution) * ca.fmin(u[0], 0)
            speeds.append(u)
            sides.append(ca.vertcat(ca.if_else(strikes, bounced, FAR), u[1:]))
        inputs = [self.moved, self.touches, restitution, self.system]
        return self._function(inputs, [ca.vertcat(*speeds), ca.vertcat(*sides)])

    def work(self) -> ca.Function:
        """Return (change of velocity, impulses, speeds before, system) -> (impulses . speeds, impulses . their changes)."""
        u, total = SX.sym("u", 3 * self.points), SX.zeros(2)
        for k, (p, before) in enumerate(zip(self._each(self.impulse), self._each(u), strict=True)):
            total += ca.vertcat(ca.dot(p, before), ca.dot(p, self.speeds(k, self.moved)))
        return self._function([self.moved, self.impulse, u, self.system], [total])

    def _fast(self, touches: SX, u: SX) -> SX:
        return ca.logic_and(touches, u[0] < -self.options.restitution_speed)
