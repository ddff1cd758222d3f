"""A scoop carries sand: an arm drives it into a bed of sand and lifts it out, with as much on it as it can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.robots import Pusher, SoftMotion, SoftWorld
from costate.model import Shape
from costate.tasks.soft.robots.arm import DOWN, TOOL, about_y, arm_with, through
from costate.tasks.soft.robots.task import SEGMENT, RobotTask, Setting

DT = 0.01
MIDDLE = np.array([0.5, 0.0])
HANG = 0.12
"""Distance of the scoop's floor from the flange [m]."""
WALL = 0.02
WIDE, LONG, HIGH = 0.1, 0.09, 0.04
"""Inside of the scoop [m]: across, along, and the height of its walls."""
NEAR = (0.0, -1.2, 2.0, -2.3, -1.57, -1.57)


def scoop_shapes() -> list[Shape]:
    """Return the scoop's floor, back and sides, in the frame of the flange; it is open in front (x) and on top (-z)."""
    z = HANG - HIGH / 2
    floor = cs.shapes.box((LONG + WALL, WIDE + 2 * WALL, WALL), (0, 0, HANG + WALL / 2))
    back = cs.shapes.box((WALL, WIDE + 2 * WALL, HIGH), (-LONG / 2, 0, z))
    sides = [cs.shapes.box((LONG + WALL, WALL, HIGH), (0, s * (WIDE + WALL) / 2, z)) for s in (-1, 1)]
    return [floor, back, *sides]


@dataclass(frozen=True)
class ScoopTask(RobotTask):
    """Carry sand out of a box with a scoop."""

    summary: str = "a UR5 scoops sand out of a box"
    steps: int = 160
    iterations: int = 16
    rate: float = 0.014
    spacing: float = 0.0075
    knots: int = 8
    lifted: float = 0.12
    """Height above which sand counts as carried [m]."""
    goal: float = 0.3
    """Carried sand from which on it counts as solved [kg]."""

    def setting(self, seed: int) -> Setting:
        random = np.random.default_rng(seed)
        dx, h = 2 * self.spacing, self.spacing
        size = np.array([0.225, 0.165, 0.06])
        low = np.append(MIDDLE - size[:2] / 2, 0.0)
        numbers = {"E": 1.5e4, "nu": 0.3, "angle": float(random.uniform(30, 40)), "density": 1500.0}
        sand = SoftBody(fill.box(tuple(low), tuple(low + size), h), h, "sand", numbers, name="sand")
        lower = low - 2 * dx
        upper = np.append(low[:2] + size[:2], 0.3) + 2 * dx
        grid = MpmGrid(tuple(int(n) + 1 for n in np.round((upper - lower) / dx)), dx, tuple(lower))
        model = MpmModel(grid, [sand], DT, sides={"-z": 0.5}, segment=SEGMENT)
        shapes = scoop_shapes()
        robot = arm_with(shapes)
        world = cs.World(robots={"arm": robot}, actuators=cs.PositionServo(), contact=None, dt=DT)
        soft = SoftWorld(model, world, [Pusher(f"arm/{TOOL}", cs.shapes.union(*shapes), 0.5)])
        q = self._guess(robot)
        start = world.initial_state(dtype=torch.float64).clone()
        start[: world.nq] = q[0]
        return Setting(soft, start, q, torch.ones(world.nu, dtype=torch.float64))

    def _guess(self, robot: cs.Robot) -> Tensor:
        """Return a shallow pass over the sand, then straight up."""
        x = MIDDLE[0] + np.array([-0.08, -0.08, -0.04, 0.0, 0.03, 0.03, 0.03, 0.03])
        z = np.array([0.1, 0.06, 0.05, 0.05, 0.07, 0.12, 0.18, 0.18])
        tilt = np.array([0.25, 0.25, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0])
        turns = np.stack([about_y(t) @ DOWN for t in tilt])
        # The scoop's floor is at HANG along the flange's z axis.
        places = np.stack([x, np.zeros(8), z], -1) - HANG * turns[:, :, 2]
        return through(robot, TOOL, places, turns, NEAR)

    def _share(self, motion: SoftMotion) -> Tensor:
        return torch.sigmoid((motion.x[-1, :, 2] - self.lifted) / 0.02).mean()

    def loss(self, setting: Setting, motion: SoftMotion) -> Tensor:
        nq = setting.soft.world.nq
        return 1 - self._share(motion) + 1e-4 * motion.robot[:, nq:].square().mean()

    def judge(self, setting: Setting, motion: SoftMotion) -> tuple[dict[str, Any], bool]:
        body = setting.soft.model.bodies[0]
        mass = body.values()["density"] * body.volume
        carried = mass * float((motion.x[-1, :, 2] > self.lifted).sum())
        facts = {"carried [kg]": carried, "sand in the box [kg]": mass * body.count}
        return facts, carried >= self.goal
