"""Lengths: what tendons and actuators act along.

A length x of a configuration changes as dx/dt = J v, and a force F along it acts on the coordinates as J^T F. Some transmissions of
MJCF have no length (a force on a free body); theirs is 0, though J is not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.model.tendon import Pulley, Via, Wrap
from costate.sim.forces.configuration import Configuration
from costate.sim.forces.wrapping import wrap

Terms = tuple[tuple[int, int, float], ...]
"""Indices in q and in v, and coefficients."""


class Length(ABC):
    """Something that actuators and tendons act along."""

    @abstractmethod
    def of(self, c: Configuration) -> SX:
        """Return the length at a configuration."""

    @abstractmethod
    def row(self, c: Configuration) -> SX:
        """Return J, (1, nv)."""

    def rate(self, c: Configuration, v: SX) -> SX:
        """Return J v."""
        return self.row(c) @ v

    def add(self, c: Configuration, forces: SX, force: SX) -> SX:
        """Return forces on the coordinates, (nv,), with that of a force along the length."""
        return forces + self.row(c).T * force

    def scaled(self, gear: float) -> Length:
        """Return the length times a constant."""
        return self if gear == 1.0 else Geared(self, gear)


@dataclass(frozen=True, eq=False)
class Sum(Length):
    """A weighted sum of coordinates: that of a fixed tendon, or of a single joint."""

    terms: Terms
    offset: float = 0.0
    """Offset from joints that follow others at a distance (mimic)."""

    def of(self, c: Configuration) -> SX:
        return sum((k * c.q[iq] if k != 1.0 else c.q[iq] for iq, _, k in self.terms), SX(self.offset or 0))

    def rate(self, c: Configuration, v: SX) -> SX:
        return sum((k * v[iv] if k != 1.0 else v[iv] for _, iv, k in self.terms), SX(0))

    def row(self, c: Configuration) -> SX:
        J = SX(1, c.tree.nv)
        for _, iv, k in self.terms:
            J[0, iv] = k
        return J

    def add(self, c: Configuration, forces: SX, force: SX) -> SX:
        found = SX(forces)
        for _, iv, k in self.terms:
            found[iv] += force if k == 1.0 else k * force
        return found

    def scaled(self, gear: float) -> Sum:
        return Sum(tuple((iq, iv, gear * k) for iq, iv, k in self.terms), gear * self.offset)


@dataclass(frozen=True, eq=False)
class Geared(Length):
    """A length times a constant."""

    length: Length
    gear: float

    def of(self, c: Configuration) -> SX:
        return self.gear * self.length.of(c)

    def row(self, c: Configuration) -> SX:
        return self.gear * self.length.row(c)


class Found(Length):
    """A length that is found together with its Jacobian, once for a configuration."""

    @abstractmethod
    def find(self, c: Configuration) -> tuple[SX, SX]:
        """Return the length, and J (1, nv)."""

    def of(self, c: Configuration) -> SX:
        return c.known(self, self.find)[0]

    def row(self, c: Configuration) -> SX:
        return c.known(self, self.find)[1]


@dataclass(frozen=True, eq=False)
class Path(Found):
    """The length of a spatial tendon. Where a cable wraps around a shape, its points of contact count as points of the shape: they
    lie where the length does not change with them."""

    path: Sequence[Via | Wrap | Pulley]

    def find(self, c: Configuration) -> tuple[SX, SX]:
        parts = list(_segments(c, self.path))
        J = sum((share * J for _, share, J in parts), SX(1, c.tree.nv))
        return sum((share * length for length, share, _ in parts), SX(0)), J


def _segments(c: Configuration, path: Sequence[Via | Wrap | Pulley]) -> Iterator[tuple[SX, float, SX]]:
    """Yield length, share and Jacobian of the parts of a path between two points."""
    share, start, around = 1.0, None, None
    for part in path:
        if isinstance(part, Pulley):
            share, start, around = 1 / part.divisor, None, None
        elif isinstance(part, Wrap):
            around = part
        else:
            if start is not None:
                length, J = _straight(c, start, part) if around is None else _wrapped(c, start, around, part)
                yield length, share, J
            start, around = part, None


def _straight(c: Configuration, a: Via, b: Via) -> tuple[SX, SX]:
    return _line(c, (a.link, c.point(a.link, a.point)), (b.link, c.point(b.link, b.point)))


def _wrapped(c: Configuration, a: Via, around: Wrap, b: Via) -> tuple[SX, SX]:
    start, end = (c.point(x.link, x.point) for x in (a, b))
    side = None if around.side is None else c.point(around.side.link, around.side.point)
    touch = wrap(around.kind, around.radius, c.frame(around.link, around.pose), start, end, side)
    free, J_free = _line(c, (a.link, start), (b.link, end))
    before, J_before = _line(c, (a.link, start), (around.link, touch.first))
    after, J_after = _line(c, (around.link, touch.second), (b.link, end))
    J = ca.densify(J_free + J_before + J_after)  # if_else wants one pattern
    J = ca.if_else(touch.wraps, J_before + J_after + 0 * J, J_free + 0 * J)
    return ca.if_else(touch.wraps, before + touch.along + after, free), ca.sparsify(J)


def _line(c: Configuration, a: tuple[str, SX], b: tuple[str, SX]) -> tuple[SX, SX]:
    """Return the distance of two points of links, and its Jacobian (1, nv)."""
    way = b[1] - a[1]
    n2 = ca.dot(way, way)
    far = n2 > 1e-30
    length = ca.sqrt(ca.if_else(far, n2, 1))
    if c.is_rigid(a[0], b[0]):
        return ca.if_else(far, length, 0), SX(1, c.tree.nv)
    # Two points in one place have no direction; MuJoCo takes the x-axis.
    toward = ca.if_else(far, way / length, SX([1, 0, 0]))
    J = toward.T @ (c.jacobian(*b)[:3, :] - c.jacobian(*a)[:3, :])
    return ca.if_else(far, length, 0), J
