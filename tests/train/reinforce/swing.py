"""A small environment for tests: a double pendulum that is rewarded for height."""

from __future__ import annotations

from typing import ClassVar

import casadi as ca
import torch

import costate as cs
from costate.core.fork import cached_property
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.reinforce.shac import ShacOptions


class Swing(RewardedTask):
    """Episodes end when the pendulum turns fast, or after 7 steps."""

    name, summary, length, fastest = "swing", "a double pendulum swings", 7, 4.0
    training = ShacOptions(
        iterations=6, batch=8, horizon=5, actor=(12, 8), critic=(8,), critic_passes=2, minibatches=2, interval=2
    )

    @cached_property
    def world(self):
        return cs.World(
            [cs.load_robot("pendulum2")],
            actuators=cs.Torque(limit=6.0),
            contact=None,
            dt=0.05,
            parameters=list(self.varied),
            check=False,
        )

    def start(self, batch, generator):
        return 2 * torch.rand(batch, 4, generator=generator, dtype=torch.float32) - 1

    def observation_of(self, x, action, time):
        return ca.vertcat(ca.sin(x[:2]), ca.cos(x[:2]), x[2:], action, time)

    def reward_of(self, x, action, after, time):
        return -ca.cos(after[0]) - ca.cos(after[1]) * (1 + time) - 0.1 * ca.sumsqr(action) + x[2] * after[2]

    def margin_of(self, x):
        return self.fastest - ca.norm_2(x[2:])


class VariedSwing(Swing):
    """Pendulums of different masses, under gravity of different strength."""

    varied: ClassVar = {"mass:pendulum2/link_1": (0.5, 2.0), "gravity": (0.2, 1.5)}
