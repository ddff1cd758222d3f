"""The ant of SHAC (Xu et al., 2022): run along x."""

from __future__ import annotations

import math

import casadi as ca
import torch
from casadi import SX
from torch import Tensor
from torch.nn.functional import normalize

from costate.core.fork import cached_property
from costate.physics.algebra.quaternion import to_rotation
from costate.sim import Compliant, Static, World
from costate.tasks.locomotion.gym_files import gym_robot
from costate.tasks.locomotion.random import uniform
from costate.train.reinforce.rewarded import RewardedTask
from costate.train.reinforce.shac import ShacOptions


class Ant(RewardedTask):
    """Reward vx + 0.1 up + heading + (height - 0.27); an episode ends below a height of 0.27 m."""

    name = "ant"
    summary = "an ant of 182 kg runs along x"
    training = ShacOptions()
    lowest = 0.27

    @cached_property
    def world(self) -> World:
        robot = gym_robot("ant", {"geom": {"density": 1000}, "joint": {"armature": 0.05}}, gear=200)
        contact = Compliant(
            stiffness=4e4, damping=0.25, friction=0.75, friction_speed=0.3, smoothing=5e-3, limit_damping=0.1
        )
        floor = Static("floor", robot.model.links[0].collisions[0])
        return World([robot], scenery=[floor], contact=contact, actuators="file", dt=1 / 60, substeps=16, check=False)

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        half = math.pi / 48 * uniform(batch, 1, generator)
        place = torch.tensor([0, 0, 0.75]) + 0.1 * uniform(batch, 3, generator)
        turn = torch.cat([normalize(uniform(batch, 3, generator), dim=-1) * half.sin(), half.cos()], 1)
        joints = torch.tensor([0, 1, 0, -1, 0, -1, 0, 1]) + 0.2 * uniform(batch, 8, generator)
        return torch.cat([place, turn, joints, 0.25 * uniform(batch, 14, generator)], 1)

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        R = to_rotation(x[3:7])
        v, w = R @ x[15:18], R @ x[18:21]
        return ca.vertcat(x[2], x[3:7], v, w, x[7:15], 0.1 * x[21:29], R[2, 2], R[0, 0], action)

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        R = to_rotation(after[3:7])
        return (R @ after[15:18])[0] + 0.1 * R[2, 2] + R[0, 0] + self.margin_of(after)

    def margin_of(self, x: SX) -> SX:
        return x[2] - self.lowest
