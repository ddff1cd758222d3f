"""A gripper lifts a soft ball: firmly enough that it is not dropped, gently enough that it is not crushed."""

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
from costate.tasks.soft.robots.arm import DOWN, through
from costate.tasks.soft.robots.task import SEGMENT, RobotTask, Setting

DT = 5e-3
RADIUS = 0.03
X, Y = 0.45, 0.0
"""Place of the ball [m]."""
PAD = 0.0584 + 0.045
"""Distance of the middle of the fingers' pads from the hand [m]."""
SERVOS = {
    "panda": cs.PositionServo(),
    "panda/panda_finger_joint1": cs.PositionServo(stiffness=1000.0, damping=20.0),
}
"""The fingers weigh little, so that gains which suit their inertia would hold nothing."""
HIGH = 0.1
"""Height by which it is to be lifted [m]."""


@dataclass(frozen=True)
class LiftTask(RobotTask):
    """Lift a soft ball with the two fingers of an arm."""

    summary: str = "a Panda lifts a soft ball, and neither drops nor crushes it"
    steps: int = 160
    iterations: int = 30
    rate: float = 0.1
    spacing: float = 0.005
    crushed: float = 4.0
    """Force of a finger that crushes the ball [N]."""
    missed: float = 0.01
    """Distance of the ball's middle from where it should be at the end that is allowed [m]."""

    def setting(self, seed: int) -> Setting:
        random = np.random.default_rng(seed)
        dx, weight = 2 * self.spacing, random.uniform(800, 1200)
        centre = np.array([X, Y, RADIUS])
        ball = fill.fill(
            cs.shapes.sphere(RADIUS, tuple(centre)), self.spacing, tuple(centre - RADIUS), tuple(centre + RADIUS)
        )
        body = SoftBody(ball, self.spacing, "neo_hookean", {"E": 8e3, "nu": 0.35, "density": weight}, name="ball")
        low = np.array([X - 0.08, Y - 0.08, -2 * dx])
        grid = MpmGrid(tuple(int(n) for n in np.ceil((np.array([X + 0.08, Y + 0.08, 0.2]) - low) / dx)), dx, tuple(low))
        model = MpmModel(grid, [body], DT, sides={"-z": 0.5}, segment=SEGMENT)
        robot = cs.load_robot("panda").double()
        world = cs.World(robots={"panda": robot}, actuators=SERVOS, contact=None, dt=DT)
        pads = [
            Pusher(f"panda/panda_{name}finger", cs.shapes.box((0.03, 0.02, 0.03), (0, side * 0.01, 0.045)), 0.8)
            for name, side in (("left", 1), ("right", -1))
        ]
        heights = np.array([0, 0, 0, 0.03, 0.07, HIGH, HIGH]) + RADIUS + PAD
        places = np.stack([np.full(7, X), np.full(7, Y), heights], -1)
        assert robot.model.home is not None
        q = through(robot, "panda_hand", places, np.tile(DOWN, (7, 1, 1)), tuple(robot.model.home))
        q[:, -1] = torch.tensor([0.038, *[RADIUS - 0.001] * 6])  # the first guess just touches the ball
        start = world.initial_state(dtype=torch.float64).clone()
        start[: world.nq] = q[0]
        scale = torch.tensor([0.02] * (world.nu - 1) + [0.02], dtype=torch.float64)
        return Setting(SoftWorld(model, world, pads), start, q, scale)

    def loss(self, setting: Setting, motion: SoftMotion) -> Tensor:
        hand = setting.soft.world.link_pose(motion.robot[::SEGMENT], "panda/panda_hand").position
        below = torch.tensor([0.0, 0.0, PAD], dtype=torch.float64)
        slipped = (motion.x.mean(-2) - (hand - below)).square().sum(-1).mean() / self.missed**2
        goal = motion.x[0].mean(0) + torch.tensor([0.0, 0.0, HIGH], dtype=torch.float64)
        off = (hand[-1] - below - goal).square().sum() / self.missed**2
        force = motion.wrenches[..., :3].norm(dim=-1)
        return slipped + off + (force - 0.7 * self.crushed).clamp(min=0).square().mean()

    def judge(self, setting: Setting, motion: SoftMotion) -> tuple[dict[str, Any], bool]:
        goal = motion.x[0].mean(0) + torch.tensor([0.0, 0.0, HIGH], dtype=torch.float64)
        off = float((motion.x[-1].mean(0) - goal).norm())
        force = float(motion.wrenches[..., :3].norm(dim=-1).max())
        facts = {
            "lifted [m]": float(motion.x[-1, :, 2].mean() - motion.x[0, :, 2].mean()),
            "missed by [m]": off,
            "greatest force of a finger [N]": force,
        }
        return facts, off <= self.missed and force <= self.crushed
