"""The cartpole of SHAC (Xu et al., 2022): swing a heavy pole up and balance it."""

from __future__ import annotations

import math
from typing import ClassVar

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.core.fork import cached_property
from costate.model.builtin.parts import BLUE, GREY, WHITE, X, Y, box, joint, link, robot
from costate.robot import Robot
from costate.sim import Torque, World
from costate.tasks.locomotion.random import uniform
from costate.train.episode import Trajectory, Verdict
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.reinforce.shac import ShacOptions


class Cartpole(RewardedTask):
    """Reward -(angle^2 + 0.1 rate^2 + 0.05 x^2 + 0.1 speed^2), the angle against upright, within half a turn."""

    name = "cartpole"
    summary = "a cart swings a pole up and balances it"
    unit = "rad"
    length = 240
    training = ShacOptions(iterations=1500, learning_rate=1e-2, critic_rate=1e-3, actor=(64, 64), critic=(64, 64))
    strength = 1000.0
    tolerance: ClassVar[float] = 0.1  # type: ignore[assignment]  (never None)
    """Largest angle of a pole that stands, over the last second [rad]."""

    @cached_property
    def world(self) -> World:
        bar = link("bar", shapes=[], visuals=[box((8, 0.05, 0.05), color=GREY)])
        cart = link("cart", 1.0, inertia=1.0, shapes=[], visuals=[box((0.5, 0.5, 0.2), color=BLUE)])
        rod = box((0.05, 0.05, 1.0), (0, 0, 0.5), WHITE)
        pole = link("pole", 10.0, (0, 0, 0.5), 1.0, shapes=[], visuals=[rod])
        joints = [
            joint("slider", "prismatic", "bar", "cart", axis=X, limits=(-4.0, 4.0, 100.0, self.strength)),
            joint("hinge", "continuous", "cart", "pole", axis=Y),
        ]
        made = Robot(robot("cartpole", [bar, cart, pole], joints, "Xu et al., 2022"))
        return World(
            [made], actuators={"slider": Torque(limit=self.strength)}, contact=None, dt=1 / 60, substeps=4, check=False
        )

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        q = torch.tensor([0, -math.pi]) + math.pi / 2 * uniform(batch, 2, generator)
        return torch.cat([q, 0.25 * uniform(batch, 2, generator)], 1)

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        return ca.vertcat(x[0], x[2], ca.sin(x[1]), ca.cos(x[1]), x[3])

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        angle = ca.atan2(ca.sin(after[1]), ca.cos(after[1]))
        return -(angle**2) - 0.1 * after[3] ** 2 - 0.05 * after[0] ** 2 - 0.1 * after[2] ** 2

    def judge(self, trajectory: Trajectory) -> Verdict:
        angle = trajectory.states[-60:, :, 1]
        error = torch.atan2(angle.sin(), angle.cos()).abs().amax(0)
        reward, _ = self.rewards(trajectory)
        return Verdict(
            error < self.tolerance, error, columns={"return": reward.sum(0), "length [steps]": 0 * error + self.length}
        )
