"""Free bodies of a mapped world: one function for all of them, from a body's state and constants.

It is the step of a world of one body whose constants are inputs, so that many bodies move exactly as few do. Impulses act in world
axes at the centre of mass, where the mass matrix falls into a mass and an inertia.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from casadi import SX

from costate.collision.bounds import bound
from costate.collision.narrow import POSE
from costate.collision.shapes import length
from costate.core.fork import cached_property
from costate.model import Transform
from costate.physics.kinematics import body_poses, link_pose
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import free_motion
from costate.sim.scene.scene import Body, make_scene
from costate.sim.setup import Setup, Symbols

NQ, NV = 7, 6
LINK_NUMBERS = {"mass": 1, "com": 3, "inertia": 9}
JOINT_NUMBERS = {"rotation": 9, "translation": 3}
CONSTANTS = 32
"""Numbers of a body: those of its link and its joint, its wrench (6), its radius about the centre of mass (1)."""
INERTIA = 7
"""Inverse mass, and the inverse inertia in world axes: xx, xy, xz, yy, yz, zz."""
RECORD = 3 + INERTIA + 2 * NV
"""Centre of mass; INERTIA; its velocity and the angular velocity without contact; the same before the step. World axes."""


@dataclass(frozen=True, eq=False)
class Moving:
    """The moving bodies of a world, in the order of its joints."""

    setup: Setup

    @cached_property
    def names(self) -> list[str]:
        """Of their links."""
        return [j.child for j in self.setup.scene.model.joints]

    @property
    def count(self) -> int:
        return len(self.names)

    def number(self, link: str) -> int:
        """Of a body, or one after the last where the link does not move."""
        return self.names.index(link) if link in self.names else self.count

    def coordinates(self) -> np.ndarray:
        """Where q and v of every body are in a state, (count, NQ + NV)."""
        model = self.setup.scene.model
        q = np.array(model.q_index)[:, None] + np.arange(NQ)
        return np.concatenate([q, self.setup.nq + np.array(model.v_index)[:, None] + np.arange(NV)], axis=1)

    def constants(self, s: Symbols) -> SX:
        """CONSTANTS of every body, one after the other."""
        rows = [self._of(s, j.name, j.child) for j in self.setup.scene.model.joints]
        return ca.densify(ca.vertcat(*rows))

    def _of(self, s: Symbols, joint: str, link: str) -> SX:
        values = [s.params[kind, link] for kind in LINK_NUMBERS] + [s.params[kind, joint] for kind in JOINT_NUMBERS]
        flat = [ca.vec(ca.densify(x).T) for x in values]
        wrench = s.wrenches.get(link, SX.zeros(6))
        return ca.vertcat(*flat, wrench, self._radius(s, link))

    def _radius(self, s: Symbols, link: str) -> SX:
        """Of a sphere about the centre of mass that holds all shapes that touch."""
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
        body = Body("one", (), 1.0, np.eye(3), pose=Transform())
        scene = make_scene({}, {}, [body], [], (0.0, 0.0, 0.0), False, None)
        link, joint = scene.model.joints[0].child, scene.model.joints[0].name
        names = [f"{kind}:{link}" for kind in LINK_NUMBERS] + [f"{kind}:{joint}" for kind in JOINT_NUMBERS]
        one = Setup(scene, (), setup.contact, "semi_implicit", setup.dt, 1, (*names, "gravity"), (link,))
        s = self.symbols = Symbols(one)
        self.link = link
        self.com = s.given[f"com:{link}"]
        self.radius = SX.sym("radius")
        self.constants = [*list(s.given.values())[:-1], s.wrenches[link], self.radius]
        self.R, self.p = link_pose(s.tree, body_poses(s.tree, s.q), link)

    def _function(self, name: str, more: Sequence[SX], outputs: Sequence[SX]) -> ca.Function:
        """Of the state, the constants and gravity, and more."""
        s = self.symbols
        return ca.Function(
            name,
            [s.x, ca.vertcat(*self.constants), s.given["gravity"], *more],
            [ca.densify(x) for x in outputs],
        )

    def _twist(self, v: SX) -> SX:
        """World velocity of the centre of mass, and angular velocity."""
        return ca.vertcat(self.R @ (v[:3] + ca.cross(v[3:], self.com)), self.R @ v[3:])

    def free(self) -> ca.Function:
        """(state, constants, gravity) -> (velocity without contact, POSE, RECORD, how fast its points move at most)."""
        s = self.symbols
        velocity = free_motion(s, s.q, s.v, s.u).velocity
        I = self.R @ _inverse(s.params["inertia", self.link]) @ self.R.T
        inertia = ca.vertcat(1 / s.params["mass", self.link], *(I[i, j] for i in range(3) for j in range(i, 3)))
        twist = self._twist(velocity)
        record = ca.vertcat(self.p + self.R @ self.com, inertia, twist, self._twist(s.v))
        speed = _length(twist[:3]) + _length(twist[3:]) * self.radius
        return self._function("free", [], [velocity, ca.vertcat(ca.vec(self.R), self.p), record, speed])

    def finish(self) -> ca.Function:
        """(state, constants, gravity, velocity without contact, changes of the twist at the end and on the mean) -> next state."""
        s = self.symbols
        velocity, change, mean = SX.sym("v", NV), SX.sym("change", NV), SX.sym("mean", NV)
        after, travelled = (velocity + self._local(x) for x in (change, mean))
        x = advance(s.setup.scene.model, s.q, travelled, after, s.setup.dt)
        return self._function("finish", [velocity, change, mean], [x])

    def _local(self, twist: SX) -> SX:
        """A change of the twist as one of the body's velocity."""
        turn = self.R.T @ twist[3:]
        return ca.vertcat(self.R.T @ twist[:3] - ca.cross(turn, self.com), turn)


def _inverse(A: SX) -> SX:
    """Of a symmetric matrix (3, 3)."""
    A = ca.densify(A)
    rows = [A[:, k] for k in range(3)]
    sides = [ca.cross(rows[(k + 1) % 3], rows[(k + 2) % 3]) for k in range(3)]
    return ca.horzcat(*sides).T / ca.dot(rows[0], sides[0])


def _length(v: SX) -> SX:
    """Its derivative is not asked for."""
    return ca.sqrt(ca.sumsqr(v) + 1e-300)


__all__ = ["CONSTANTS", "INERTIA", "NQ", "NV", "POSE", "RECORD", "Moving", "OneBody"]
