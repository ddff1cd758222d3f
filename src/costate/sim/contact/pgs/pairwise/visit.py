"""The visit of a sweep to the contact points of one group, for any storage of velocities.

The two sides of a group are carriers: free bodies, or trees of links. A visit reads how the velocities of both have changed so far
(`moved`), solves the three rows of every contact point in turn (normal, two tangents), and changes `moved` by the new impulses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.sim.contact.pgs.pairwise.old_sweep import blocks, projected
from costate.sim.contact.rows import Row

if TYPE_CHECKING:
    from costate.sim.contact.pgs.model import PGS

COUPLES = {(0, 1): 0, (0, 2): 1, (1, 2): 2}
"""Two rows of a contact point -> number of their coupling."""
ROWS = [Row("normal", SX(0), SX(0)), *(Row("tangent", SX(0), SX(0), 0, SX(1)) for _ in range(2))]
"""The rows of a contact point."""


class Visit(ABC):
    """The functions of a walk over groups of contact points."""

    more: list[SX]
    """Further numbers of a group that its storage reads."""

    def __init__(self, points: int, options: PGS, width: int, system: int):
        """Make the symbols of a visit. width: velocities per carrier; system: numbers per contact point."""
        self.points, self.options, self.width, self._system = points, options, width, system
        self.moved, self.impulse = SX.sym("moved", 2 * width), SX.sym("lambda", 3 * points)
        self.system, self.c = SX.sym("system", system * points), SX.sym("c", 3 * points)
        self.bound = SX.sym("mu")

    @abstractmethod
    def speeds(self, k: int, moved: SX) -> SX:
        """Return the speeds along the rows of a contact point, (3,)."""

    @abstractmethod
    def pushed(self, k: int, moved: SX, impulse: SX) -> SX:
        """Return `moved` after impulses along the rows of a contact point."""

    @abstractmethod
    def couplings(self, k: int) -> SX:
        """Return how the rows of a contact point couple, in the order of COUPLES, (3,)."""

    @abstractmethod
    def steps(self, k: int) -> SX:
        """Return the inverse of what one unit of impulse changes of the own speed, (3,)."""

    def project(self, k: int, block: tuple[int, ...], aims: list[SX], now: list[SX]) -> list[SX]:
        """Return what the rows of a block may be where they would like to be `aims`."""
        return projected(ROWS, block, aims, now, self.steps(k), ca.vertcat(0, self.bound, self.bound))

    def part(self, k: int) -> SX:
        """Return the numbers of one contact point."""
        return self.system[self._system * k : self._system * (k + 1)]

    def sweep(self, watch: bool = False) -> ca.Function:
        """Return (moved, impulses, [worst], system, c, friction, more) -> (moved, impulses, [worst]).

        watch: Carry the largest speed by which a row was changed along.
        """
        moved, worst, found = self.moved, SX.sym("worst"), []
        most = worst
        for k in range(self.points):
            impulse, step = self._impulse(k), self.steps(k)
            new = self._solved(k, moved, impulse, step)
            change = new - impulse
            most = ca.fmax(most, ca.mmax(ca.fabs(change) / step))
            moved = self.pushed(k, moved, change)
            found.append(new)
        reads = [self.system, self.c, self.bound, *self.more]
        states, after = [self.moved, self.impulse], [moved, ca.vertcat(*found)]
        if watch:
            states, after = [*states, worst], [*after, most]
        return ca.Function("sweep", [*states, *reads], after)

    def apply(self, weighted: bool = False) -> ca.Function:
        """Return (moved, impulses, system, more, [weights]) -> moved by the impulses (times weights, one per contact point)."""
        weights, moved = SX.sym("weights", self.points), self.moved
        for k in range(self.points):
            moved = self.pushed(k, moved, weights[k] * self._impulse(k) if weighted else self._impulse(k))
        inputs = [self.moved, self.impulse, self.system, *self.more, *([weights] if weighted else [])]
        return ca.Function("apply", inputs, [moved])

    def _impulse(self, k: int) -> SX:
        return self.impulse[3 * k : 3 * (k + 1)]

    def _solved(self, k: int, moved: SX, impulse: SX, step: SX) -> SX:
        """Return the impulses of a contact point after each of its rows was solved in turn."""
        speed = list(ca.vertsplit(self.speeds(k, moved) + self.c[3 * k : 3 * (k + 1)]))
        now = list(ca.vertsplit(impulse))
        for block in blocks(ROWS, self.options):
            # A[k, k] step[k] = 1 / (1 + cfm): what a row itself has added to the speed is taken out again.
            aims = [now[i] / (1 + self.options.cfm) - speed[i] * step[i] for i in block]
            for i, new in zip(block, self.project(k, block, aims, now), strict=True):
                for j in range(i + 1, 3):
                    speed[j] = speed[j] + self.couplings(k)[COUPLES[i, j]] * (new - impulse[i])
                now[i] = new
        return ca.vertcat(*now)
