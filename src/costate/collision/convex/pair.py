"""Two convex solids: how far the one reaches towards the other, in a direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import casadi as ca
from casadi import SX

from costate.collision.contact_point import BESIDE, POSE, pose
from costate.collision.shapes.convex import Convex
from costate.collision.shapes.solid import resized, sizes

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Pair:
    """Two convex solids, in the frame of the second."""

    a: Convex
    b: Convex
    R: SX
    """Axes of a, (3, 3)."""
    t: SX
    """Origin of a [m], (3,)."""

    def support_a(self, d: SX) -> SX:
        return self.t + self.R @ self.a.support(self.R.T @ d)

    def support_b(self, d: SX) -> SX:
        return self.b.support(d)

    def difference(self, d: SX) -> SX:
        """Return the point of A - B furthest in a direction."""
        return self.support_a(d) - self.support_b(-d)

    def curvature(self, n: SX) -> SX:
        """Return how that point moves with n, (3, 3); solids without round surfaces do not take part."""
        total = SX(3, 3)
        for solid, R, way in ((self.a, self.R, -1), (self.b, SX.eye(3), 1)):
            if solid.is_round:
                x = SX.sym("x", 3)
                bend = ca.jacobian(solid.support(x), x)
                total = total - R @ ca.substitute(bend, x, way * (R.T @ n)) @ R.T
        return total

    def separation(self, n: SX) -> SX:
        """Return how far apart the cores are along a unit direction [m]."""
        return ca.dot(n, self.difference(-n))

    def between(self) -> SX:
        """Return the way from the middle of b to that of a, never zero."""
        return self.t + self.R @ self.a.centre() - self.b.centre() + BESIDE

    def flipped(self) -> Pair:
        """Return the same pair, in the frame of the first solid."""
        return Pair(self.b, self.a, self.R.T, -(self.R.T @ self.t))


@dataclass(frozen=True, eq=False)
class PairKind:
    """The kinds of two convex solids. The numbers of such a pair are (pose of a in b (POSE,), sizes of a, sizes of b)."""

    a: Convex
    b: Convex

    @property
    def number_sizes(self) -> tuple[int, int, int]:
        return POSE, len(sizes(self.a)), len(sizes(self.b))

    def body(self, fn: Callable[..., T]) -> Callable[..., T]:
        """Return fn(pair, *values) as a function of the values and, after them, the numbers of the pair."""

        def of_numbers(*given: SX) -> T:
            *values, x, size_a, size_b = given
            return fn(Pair(resized(self.a, size_a), resized(self.b, size_b), *pose(x)), *values)

        return of_numbers
