"""Two convex solids as contact sees them: how far the one reaches towards the other, in a direction."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.collision.convex.support import features
from costate.collision.mesh.hull import Hull
from costate.collision.shapes import Cylinder, Ellipsoid, Solid, resized, sizes


@dataclass(frozen=True, eq=False)
class Pair:
    """Two convex solids, in the frame of the second."""

    a: Solid
    b: Solid
    R: SX
    """Axes of a, (3, 3)."""
    t: SX
    """Origin of a [m], (3,)."""

    def support_a(self, d: SX) -> SX:
        return self.t + self.R @ features(self.a).support(self.a, self.R.T @ d)

    def support_b(self, d: SX) -> SX:
        return features(self.b).support(self.b, d)

    def difference(self, d: SX) -> SX:
        """The point of A - B furthest in a direction."""
        return self.support_a(d) - self.support_b(-d)

    def curvature(self, n: SX) -> SX:
        """How that point moves with n, (3, 3); flat solids do not take part."""
        total = SX(3, 3)
        for solid, R, way in ((self.a, self.R, -1), (self.b, SX.eye(3), 1)):
            if isinstance(solid, Ellipsoid | Cylinder):
                x = SX.sym("x", 3)
                bend = ca.jacobian(features(solid).support(solid, x), x)
                total = total - R @ ca.substitute(bend, x, way * (R.T @ n)) @ R.T
        return total

    def separation(self, n: SX) -> SX:
        """How far apart the cores are along a unit direction [m]."""
        return ca.dot(n, self.difference(-n))

    def between(self) -> SX:
        """From the middle of b to that of a, never zero."""
        return self.t + self.R @ centre(self.a) - centre(self.b) + SX([1e-9, 2e-9, 3e-9])

    def flipped(self) -> Pair:
        """The same pair, in the frame of the first solid."""
        return Pair(self.b, self.a, self.R.T, -(self.R.T @ self.t))


def centre(solid: Solid) -> SX:
    """A point well inside."""
    if not isinstance(solid, Hull):
        return SX.zeros(3)
    corners = solid.corners
    return sum(corners[1:], corners[0]) / len(corners)


def pair_symbols(a: Solid, b: Solid) -> tuple[Pair, list[SX]]:
    """A pair of solids of these kinds, and its symbols: (pose of a in b (12,), sizes of a, sizes of b)."""
    pose, size_a, size_b = SX.sym("pose", 12), SX.sym("sa", len(sizes(a))), SX.sym("sb", len(sizes(b)))
    pair = Pair(resized(a, size_a), resized(b, size_b), ca.reshape(pose[:9], 3, 3), pose[9:])
    return pair, [pose, size_a, size_b]
