"""Robots among fields: entities read the poses of links, and give wrenches back, in one program with gradients both ways.

links = WorldLinks(world, ("gripper",))
pose, = links.poses(f, x)                                              # a vector that every entity can read
pushed, wrench = f.for_each(points, body, [position, pose], [OWN, TOTAL])
x = links.step(f, x, u, [wrench])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca

from costate.kernel.fields import FieldBuilder
from costate.kernel.ir.program import Var
from costate.physics.kinematics import link_poses, link_velocities
from costate.sim.setup import Setup, Symbols
from costate.sim.step import step_program
from costate.sim.world import World

POSE = 18
"""Numbers of a link: position [m], rotation row by row, velocity of its origin [m/s], angular velocity [rad/s], world axes."""


@dataclass(frozen=True, eq=False)
class WorldLinks:
    """Links of a world that fields see and push."""

    world: World
    links: tuple[str, ...]

    @property
    def setup(self) -> Setup:
        """Constant data of the world's step, with wrenches on the links."""
        return replace(self.world.setup, parameters=(), wrenches=tuple(self.links))

    def poses(self, f: FieldBuilder, x: Var) -> list[Var]:
        """Return where the links are and how they move (18 each), from the state of the world."""
        s = Symbols(self.setup)
        model = self.setup.scene.model
        poses = link_poses(model, s.params, s.q, self.links)
        velocities = link_velocities(model, s.params, s.q, s.v, self.links)
        rows = [ca.vertcat(poses[n][1], ca.vec(poses[n][0].T), *velocities[n]) for n in self.links]
        return f.call(ca.Function("link_poses", [s.x], [ca.densify(r) for r in rows]), x)

    def step(self, f: FieldBuilder, x: Var, u: Var, wrenches: Sequence[Var]) -> Var:
        """Return the state of the world after a step, in which wrenches (force [N], torque [N m] about the link's origin, world
        axes) act on the links."""
        return f.call(step_program(self.setup), x, u, *wrenches)[0]


def point_velocity(pose: ca.SX, x: ca.SX) -> ca.SX:
    """Return the velocity [m/s] of the point of a link that is at x [m]."""
    return pose[12:15] + ca.cross(pose[15:18], x - pose[:3])


def wrench_at(pose: ca.SX, x: ca.SX, force: ca.SX) -> ca.SX:
    """Return the wrench about the origin of a link of a force [N] that acts on it at x [m]."""
    return ca.vertcat(force, ca.cross(x - pose[:3], force))
