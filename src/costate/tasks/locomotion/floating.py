"""Robots whose torso floats, as SHAC (Xu et al., 2022) defines their tasks: the ant and the humanoid run along x."""

from __future__ import annotations

import math
from typing import ClassVar

import casadi as ca
import torch
from casadi import SX
from torch import Tensor
from torch.nn.functional import normalize

from costate.physics.algebra.quaternion import to_rotation
from costate.tasks.locomotion.random import uniform
from costate.tasks.locomotion.walking import Walking


class Floating(Walking):
    """A robot whose state is (position, quaternion of its torso, joints) and their velocities. An episode ends when it falls."""

    lowest: ClassVar[float]
    """Height of the torso at which an episode ends [m]."""
    height: ClassVar[float]
    """Height of the torso at the start [m]."""
    stance: ClassVar[tuple[float, ...]]
    """Angles of the joints at the start [rad]."""

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        n = len(self.stance)
        half = math.pi / 48 * uniform(batch, 1, generator)
        place = torch.tensor([0, 0, self.height]) + 0.1 * uniform(batch, 3, generator)
        turn = torch.cat([normalize(uniform(batch, 3, generator), dim=-1) * half.sin(), half.cos()], 1)
        joints = torch.tensor(self.stance) + 0.2 * uniform(batch, n, generator)
        return torch.cat([place, turn, joints, 0.25 * uniform(batch, 6 + n, generator)], 1)

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        R, q, v = self.parts(x)
        return ca.vertcat(x[2], x[3:7], R @ v[:3], R @ v[3:6], q, 0.1 * v[6:], R[2, 2], R[0, 0], action)

    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        R, _, v = self.parts(after)
        return (R @ v[:3])[0] + 0.1 * R[2, 2] + R[0, 0] + self.bonus(after, action)

    def bonus(self, x: SX, action: SX) -> SX:
        """Return the reward of a height, and minus the cost of an action."""
        return self.margin_of(x)

    def margin_of(self, x: SX) -> SX:
        return x[2] - self.lowest

    def parts(self, x: SX) -> tuple[SX, SX, SX]:
        """Return the rotation of the torso, joints, and all velocities, those of the torso (linear, angular) in its own axes."""
        n = len(self.stance)
        return to_rotation(x[3:7]), x[7 : 7 + n], x[7 + n :]
