"""Convex potentials of contacts, functions of the motion (normal, tangent, tangent) of the object against what it touches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import casadi as ca
from casadi import SX


class Potential(ABC):
    """A smooth convex function of a motion (3,) [m]."""

    @abstractmethod
    def force(self, motion: SX) -> SX:
        """Return minus the gradient (3,) [N]."""

    @abstractmethod
    def bend(self, motion: SX) -> SX:
        """Return the Hessian (3, 3) [N/m]."""


@dataclass(frozen=True, eq=False)
class Pyramid(Potential):
    """A smoothed friction cone of four facets; the tangents of the motion are scaled by the friction."""

    gap: SX
    stiffness: float
    smoothing: float

    def _facets(self, motion: SX) -> SX:
        normal, a, b = self.gap + motion[0], motion[1], motion[2]
        return ca.vertcat(normal + a, normal - a, normal + b, normal - b)

    def force(self, motion: SX) -> SX:
        a, b, c, d = ca.vertsplit(pushed(self._facets(motion), self.stiffness, self.smoothing)[0])
        return ca.vertcat(a + b + c + d, a - b, c - d)

    def bend(self, motion: SX) -> SX:
        a, b, c, d = ca.vertsplit(pushed(self._facets(motion), self.stiffness, self.smoothing)[1])
        rows = ((a + b + c + d, a - b, c - d), (a - b, a + b, SX(1, 1)), (c - d, SX(1, 1), c + d))
        return ca.vertcat(*(ca.horzcat(*row) for row in rows))


@dataclass(frozen=True, eq=False)
class Rest(Potential):
    """A smoothed plane, and friction of a given load."""

    gap: SX
    load: SX
    stiffness: float
    smoothing: float
    slide: float

    def force(self, motion: SX) -> SX:
        push, _ = pushed(self.gap + motion[0], self.stiffness, self.smoothing)
        return ca.vertcat(push, -self.load * motion[1:] / self._length(motion))

    def bend(self, motion: SX) -> SX:
        _, grows = pushed(self.gap + motion[0], self.stiffness, self.smoothing)
        r, t = self._length(motion), motion[1:]
        return ca.diagcat(grows, self.load / r * (SX.eye(2) - t @ t.T / r**2))

    def _length(self, motion: SX) -> SX:
        return ca.sqrt(ca.sumsqr(motion[1:]) + self.slide**2)


def pushed(gaps: SX, stiffness: float, smoothing: float) -> tuple[SX, SX]:
    """Return the smoothed forces of distances [N], and how fast they grow as the distances close [N/m]."""
    z = -gaps / smoothing
    small = ca.exp(-ca.fabs(z))
    force = stiffness * smoothing * (ca.fmax(z, 0) + ca.log(1 + small))
    return force, stiffness * ca.if_else(z > 0, 1, small) / (1 + small)
