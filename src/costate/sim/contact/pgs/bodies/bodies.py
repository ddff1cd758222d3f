"""Free bodies of a world that is solved pair by pair: one function for all of them, from a body's state and constants.

It is the step of a world of one body whose constants are inputs, so that many bodies move exactly as few do. Impulses act in world
axes at the centre of mass, where the mass matrix falls into a mass and an inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import bound
from costate.collision.narrow import POSE
from costate.collision.shapes import length
from costate.core.fork import cached_property
from costate.physics.kinematics import body_poses, link_pose
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import free_motion
from costate.sim.scene.parts import Body
from costate.sim.scene.scene import make_scene
from costate.sim.setup import Setup, Symbols

NQ, NV = 7, 6
LINK_NUMBERS = {"mass": 1, "com": 3, "inertia": 9}
CONSTANTS = 20
"""Numbers of a body: those of its link, its wrench (6), its radius about the centre of mass (1)."""
INERTIA = 7
"""Numbers of a body's inertia: inverse mass, and the inverse inertia in world axes: xx, xy, xz, yy, yz, zz."""
RECORD = 3 + INERTIA
"""Numbers of a body that its contact points read: centre of mass, INERTIA. World axes."""


@dataclass(frozen=True, eq=False)
class Moving:
    """The moving bodies of a world, in the order of its joints."""

    setup: Setup

    @cached_property
    def names(self) -> list[str]:
        """Names of their links."""
        return [j.child for j in self.setup.scene.model.joints]

    @property
    def count(self) -> int:
        return len(self.names)

    def number(self, link: str) -> int:
        """Return the number of a body, or one after the last where the link does not move."""
        return self.names.index(link) if link in self.names else self.count

    def coordinates(self) -> np.ndarray:
        """Return the table of q and v of every body in a state, (count, NQ + NV)."""
        model = self.setup.scene.model
        q = np.array(model.q_index)[:, None] + np.arange(NQ)
        return np.concatenate([q, self.setup.nq + np.array(model.v_index)[:, None] + np.arange(NV)], axis=1)

    def constants(self, s: Symbols) -> SX:
        """Return CONSTANTS of every body, one after the other."""
        rows = [self._of(s, j.child) for j in self.setup.scene.model.joints]
        return ca.densify(ca.vertcat(*rows))

    def _of(self, s: Symbols, link: str) -> SX:
        values = [s.params[kind, link] for kind in LINK_NUMBERS]
        flat = [ca.vec(ca.densify(x).T) for x in values]
        wrench = s.wrenches.get(link, SX.zeros(6))
        return ca.vertcat(*flat, wrench, self._radius(s, link))

    def _radius(self, s: Symbols, link: str) -> SX:
        """Return the radius of a sphere about the centre of mass that holds all shapes that touch."""
        com, most = s.params["com", link], SX(0)
        for k, c in enumerate(self.setup.scene.colliders):
            if c.link == link and k in s.used:
                placed = s.local(k)
                middle, radius = bound(placed.solid)
                most = ca.fmax(most, length(placed.to_world(middle) - com) + radius)
        return most


class OneBody:
    """The motion of one free body, with its constants as symbols."""

    def __init__(self, setup: Setup):
        body = Body("one", (), 1.0, np.eye(3))
        scene = make_scene({}, {}, [body], [], (0.0, 0.0, 0.0), False, None)
        link = scene.model.joints[0].child
        names = [f"{kind}:{link}" for kind in LINK_NUMBERS]
        one = replace(
            Setup(scene, (), setup.contact, setup.integrator, setup.dt, 1, (*names, "gravity"), (link,)),
            duration=SX.sym("h"),
        )
        s = self.symbols = Symbols(one)
        self.link = link
        self.com = s.given[f"com:{link}"]
        self.radius = SX.sym("radius")
        self.constants = [*list(s.given.values())[:-1], s.wrenches[link], self.radius]
        self.R, self.p = link_pose(s.tree, body_poses(s.tree, s.q), link)

    def _function(self, name: str, more: Sequence[SX], outputs: Sequence[SX]) -> ca.Function:
        """Return a function of the state, the constants, and more."""
        return ca.Function(name, [self.symbols.x, ca.vertcat(*self.constants), *more], [ca.densify(x) for x in outputs])

    def _twist(self, v: SX) -> SX:
        """Return the world velocity of the centre of mass, and angular velocity."""
        return ca.vertcat(self.R @ (v[:3] + ca.cross(v[3:], self.com)), self.R @ v[3:])

    def _speed(self, twist: SX) -> SX:
        """Return a bound of the speed of all points of the body."""
        return _length(twist[:3]) + _length(twist[3:]) * self.radius

    def place(self) -> ca.Function:
        """Return (state, constants) -> (POSE, RECORD, twist)."""
        s = self.symbols
        I = self.R @ _inverse(s.params["inertia", self.link]) @ self.R.T
        inertia = ca.vertcat(1 / s.params["mass", self.link], *(I[i, j] for i in range(3) for j in range(i, 3)))
        record = ca.vertcat(self.p + self.R @ self.com, inertia)
        return self._function("place", [], [ca.vertcat(ca.vec(self.R), self.p), record, self._twist(s.v)])

    def with_velocity(self) -> ca.Function:
        """Return (state, constants, twist) -> state."""
        twist = SX.sym("twist", NV)
        return self._function("turn", [twist], [ca.vertcat(self.symbols.q, self._local(twist))])

    def free(self) -> ca.Function:
        """Return (state, constants, gravity, clock) -> (twist without contact, its drift, largest speed of its points at both
        ends)."""
        s, clock = self.symbols, SX.sym("clock", 2)
        free = free_motion(s, s.q, s.v, s.u)
        twists = [self._twist(free.velocity), self._twist(free.drift)]
        twist, drift = ca.substitute(twists, [SX(s.setup.h)], [clock[0]])
        speed = ca.fmax(self._speed(twist), self._speed(self._twist(s.v)))
        return self._function("free", [s.given["gravity"], clock], [twist, drift, speed])

    def travel(self) -> ca.Function:
        """Return (state, constants, mean twist of a motion, twist at its end, its duration) -> state."""
        mean, end, tau = SX.sym("mean", NV), SX.sym("end", NV), SX.sym("tau")
        s = self.symbols
        x = advance(s.setup, s.q, self._local(mean), self._local(end), tau)
        return self._function("travel", [mean, end, tau], [x])

    def _local(self, twist: SX) -> SX:
        """Return a twist as the body's velocity."""
        turn = self.R.T @ twist[3:]
        return ca.vertcat(self.R.T @ twist[:3] - ca.cross(turn, self.com), turn)


def _inverse(A: SX) -> SX:
    """Return the inverse of a symmetric matrix (3, 3)."""
    A = ca.densify(A)
    rows = [A[:, k] for k in range(3)]
    sides = [ca.cross(rows[(k + 1) % 3], rows[(k + 2) % 3]) for k in range(3)]
    return ca.horzcat(*sides).T / ca.dot(rows[0], sides[0])


def _length(v: SX) -> SX:
    """Return the length of a vector whose derivative is not asked for."""
    return ca.sqrt(ca.sumsqr(v) + 1e-300)


__all__ = ["CONSTANTS", "INERTIA", "NQ", "NV", "POSE", "RECORD", "Moving", "OneBody"]
