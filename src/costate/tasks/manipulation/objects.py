"""Objects that are manipulated, as symbols: distances, normals and inertias of a box and of a cylinder, at its centre."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import casadi as ca
import numpy as np
from casadi import SX

from costate.model import Shape

TINY = 1e-9
"""Added under roots, whose slope is then finite at zero [m^2]."""
SHARP = 11
"""Odd power by which the normals of neighbouring faces are blended: the larger, the nearer to the edge."""


@dataclass(frozen=True)
class Thing(ABC):
    """An object to manipulate; all its lengths grow with one scale."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> np.ndarray:
        """Size of its shape, as `Shape` has it [m]."""

    @abstractmethod
    def distance(self, p: SX, scale: SX) -> SX:
        """Return the distance of a point (3,) in the object's frame from its surface [m], negative inside."""

    @abstractmethod
    def normal(self, p: SX, scale: SX) -> SX:
        """Return the outward normal (3,) of the face that a point is at, blended near edges."""

    @abstractmethod
    def level(self, p: SX, scale: SX) -> SX:
        """Return how far out a point (3,) in the object's frame is: 1 on the surface, its edges a little rounded."""

    def surfaced(self, p: SX, scale: SX) -> SX:
        """Return the point of the surface in the direction of a point, seen from the centre."""
        return p / self.level(p, scale)

    @abstractmethod
    def radii(self, scale: SX) -> SX:
        """Return the squares of the radii of inertia about its axes (3,) [m^2]."""

    @abstractmethod
    def lowest(self, scale: SX) -> SX:
        """Return points (3, n) of which one is the lowest, however it lies."""

    def shape(self, friction: float | None = None) -> Shape:
        """Return what is drawn and touched."""
        return Shape(self.kind, self.size, name="object", color=(0.93, 0.55, 0.2, 1.0), friction=friction)


@dataclass(frozen=True)
class Cube(Thing):
    """A cube."""

    kind: ClassVar[str] = "box"
    edge: float = 0.06
    """Edge [m]."""

    @property
    def size(self) -> np.ndarray:
        return np.full(3, self.edge)

    def distance(self, p: SX, scale: SX) -> SX:
        q = ca.fabs(p) - scale * self.edge / 2
        outside = ca.sqrt(ca.sumsqr(ca.fmax(q, 0)) + TINY) - TINY**0.5
        return outside + ca.fmin(ca.mmax(q), 0)

    def normal(self, p: SX, scale: SX) -> SX:
        return _direction((p / (scale * self.edge / 2)) ** SHARP)

    def level(self, p: SX, scale: SX) -> SX:
        return _norm(p / (scale * self.edge / 2))

    def radii(self, scale: SX) -> SX:
        return (scale * self.edge) ** 2 / 6 * SX.ones(3)

    def lowest(self, scale: SX) -> SX:
        return scale * self.edge / 2 * ca.SX(np.array(list(product((-1.0, 1.0), repeat=3))).T)


@dataclass(frozen=True)
class Cylinder(Thing):
    """A cylinder along z."""

    kind: ClassVar[str] = "cylinder"
    radius: float = 0.04
    """Radius [m]."""
    length: float = 0.06
    """Length [m]."""

    @property
    def size(self) -> np.ndarray:
        return np.array([self.radius, self.length])

    def distance(self, p: SX, scale: SX) -> SX:
        out = ca.sqrt(ca.sumsqr(p[:2]) + TINY) - scale * self.radius
        q = ca.vertcat(out, ca.fabs(p[2]) - scale * self.length / 2)
        return ca.sqrt(ca.sumsqr(ca.fmax(q, 0)) + TINY) - TINY**0.5 + ca.fmin(ca.mmax(q), 0)

    def normal(self, p: SX, scale: SX) -> SX:
        around = ca.sqrt(ca.sumsqr(p[:2]) + TINY)
        out, up = around / (scale * self.radius), p[2] / (scale * self.length / 2)
        return _direction(ca.vertcat(p[:2] / around * out**SHARP, up**SHARP))

    def level(self, p: SX, scale: SX) -> SX:
        out = ca.sqrt(ca.sumsqr(p[:2]) + TINY) / (scale * self.radius)
        return _norm(ca.vertcat(out, p[2] / (scale * self.length / 2)))

    def radii(self, scale: SX) -> SX:
        r, h = scale * self.radius, scale * self.length
        across = r**2 / 4 + h**2 / 12
        return ca.vertcat(across, across, r**2 / 2)

    def lowest(self, scale: SX) -> SX:
        corners = [(self.radius * x, self.radius * y, self.length / 2 * z) for x, y in _WAYS for z in (-1, 1)]
        return scale * ca.SX(np.array(corners).T)


_WAYS = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))


def _norm(x: SX) -> SX:
    """Return the norm whose unit ball is nearly a box; its power is the one that `normal` has, plus one."""
    return (ca.sum1(x ** (SHARP + 1)) + TINY) ** (1 / (SHARP + 1))


def _direction(x: SX) -> SX:
    return x / ca.sqrt(ca.sumsqr(x) + TINY)
