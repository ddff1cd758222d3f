"""Shapes that move and touch particles. A shape acts on the nodes in it and, less and less, on those within one cell of it; so
forces and gradients have no jumps."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from costate.collision.shapes import Solid
from costate.continuum.coupling import point_velocity, wrench_at
from costate.continuum.mpm.fill import distance_of
from costate.continuum.mpm.step import Touch
from costate.continuum.mpm.walls import Contact, check_contact, touched
from costate.model.shape import Shape


@dataclass(frozen=True, eq=False)
class Tool:
    """A shape that moves as it is told, whatever pushes back."""

    shape: Shape | Solid
    """Shape in the frame of the tool."""
    contact: Contact = 0.5
    """`sticky`, `slip`, or a coefficient of friction."""

    def touch(self, dx: float) -> Touch:
        """Return how a node touches it."""
        return touch_of(self.shape, self.contact, dx)


@dataclass(frozen=True, eq=False)
class Pusher:
    """A shape of a link that touches particles."""

    link: str
    """Name of the link, as the world names it: `robot/link`."""
    shape: Shape | Solid
    """Shape in the frame of the link."""
    contact: Contact = 0.5
    """`sticky`, `slip`, or a coefficient of friction."""

    def touch(self, dx: float) -> Touch:
        """Return how a node touches it."""
        return touch_of(self.shape, self.contact, dx)


def touch_of(shape: Shape | Solid, contact: Contact, dx: float) -> Touch:
    """Return how a node touches a shape, in a grid with cells of dx [m]."""
    contact = check_contact(contact)

    def touch(v: ca.SX, mass: ca.SX, x: ca.SX, pose: ca.SX) -> tuple[ca.SX, ca.SX]:
        R = ca.reshape(pose[3:12], 3, 3).T
        p = ca.SX.sym("p", 3)
        distance = distance_of(shape, p)
        both = ca.Function("distance", [p], [distance, ca.gradient(distance, p)])
        gap, normal = both(ca.mtimes(R.T, x - pose[:3]))
        normal = ca.mtimes(R, normal)
        normal = normal / ca.sqrt(ca.sumsqr(normal) + 1e-12)
        near = ca.fmin(ca.fmax(1 - gap / dx, 0), 1)
        near = near * near * (3 - 2 * near)
        own = point_velocity(pose, x)
        after = v + near * (own + touched(v - own, normal, contact) - v)
        return after, wrench_at(pose, x, mass * (v - after))

    return touch
