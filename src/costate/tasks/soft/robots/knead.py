"""An arm kneads dough: it presses and spreads a block with a pin until it is flat."""

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
from costate.tasks.soft.robots.arm import DOWN, TOOL, arm_with, through
from costate.tasks.soft.robots.task import SEGMENT, RobotTask, Setting

DT = 0.01
MIDDLE = np.array([0.5, 0.0])
"""Place of the dough, in front of the arm [m]."""
HANG = 0.05
"""Distance of the pin's axis from the flange [m]."""
RADIUS = 0.03
NEAR = (0.0, -1.2, 2.0, -2.3, -1.57, -1.57)


def flour_board(size: np.ndarray, spacing: float, room: float = 0.08, height: float = 0.2) -> MpmModel:
    """Return a block of dough on a board."""
    dx = 2 * spacing
    low = np.append(MIDDLE - size[:2] / 2, 0.0)
    points = fill.box(tuple(low), tuple(low + size), spacing)
    dough = SoftBody(points, spacing, "plasticine", {"E": 1e4, "nu": 0.3, "yield": 300.0}, name="dough")
    first = np.append(np.floor((low[:2] - room) / dx), -2.0)  # the board is the third node
    last = np.ceil(np.append(low[:2] + size[:2] + room, height) / dx)
    grid = MpmGrid(tuple(int(n) + 1 for n in last - first), dx, tuple(float(x) for x in first * dx))
    return MpmModel(grid, [dough], DT, sides={"-z": 1.0}, segment=SEGMENT)


@dataclass(frozen=True)
class KneadTask(RobotTask):
    """Flatten dough with a pin on an arm."""

    summary: str = "a UR5 flattens dough with a pin, by targets of its joints"
    steps: int = 150
    iterations: int = 25
    rate: float = 0.02
    spacing: float = 0.01
    size: tuple[float, float, float] = (0.16, 0.16, 0.06)
    """Edges of the dough [m]."""
    knots: int = 8
    goal: float = 0.6
    """Mean height of the dough at the end, over that at the beginning, from which on it counts as flat."""

    def setting(self, seed: int) -> Setting:
        random = np.random.default_rng(seed)
        size = np.asarray(self.size)
        pin = cs.shapes.capsule(RADIUS, 0.14, (0, 0, HANG), (np.pi / 2, 0, 0))
        robot = arm_with([pin])
        world = cs.World(robots={"arm": robot}, actuators=cs.PositionServo(), contact=None, dt=DT)
        soft = SoftWorld(flour_board(size, self.spacing), world, [Pusher(f"arm/{TOOL}", pin, 0.8)])
        side = random.uniform(-0.02, 0.02, 2)
        places = np.tile(np.append(MIDDLE + side, size[2] + RADIUS + HANG + 0.005), (self.knots, 1))
        places[1:, 2] -= 0.015  # the first guess just touches the dough
        q = through(robot, TOOL, places, np.tile(DOWN, (self.knots, 1, 1)), NEAR)
        start = world.initial_state(dtype=torch.float64).clone()
        start[: world.nq] = q[0]
        scale = torch.ones(world.nu, dtype=torch.float64)
        return Setting(soft, start, q, scale)

    def loss(self, setting: Setting, motion: SoftMotion) -> Tensor:
        z, first = motion.x[-1, :, 2], motion.x[0, :, 2]
        nq = setting.soft.world.nq
        return (z / first.mean()).square().mean() + 1e-3 * motion.robot[:, nq:].square().mean()

    def judge(self, setting: Setting, motion: SoftMotion) -> tuple[dict[str, Any], bool]:
        height = float(motion.x[-1, :, 2].mean() / motion.x[0, :, 2].mean())
        force = float(motion.wrenches[..., :3].norm(dim=-1).max())
        return {"height over that at first": height, "greatest force [N]": force}, height <= self.goal
