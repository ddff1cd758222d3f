"""Gymnasium's robots that move in space: Ant-v5 and Humanoid-v5."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import torch
from casadi import SX
from torch import Tensor
from torch.nn.functional import normalize

from costate.core.fork import cached_property
from costate.model.rotation import from_wxyz
from costate.physics.algebra.quaternion import to_rotation
from costate.physics.dynamics.momentum import center_of_mass
from costate.physics.params import Parameters
from costate.tasks.locomotion.v5.definition import PRACTICE, VersionFive, least


class Free(VersionFive):
    """A robot with a free base. A policy sees gymnasium's qpos without x and y, and qvel.

    In gymnasium the orientation of a start is not a unit quaternion until the first step; here it is.
    """

    heights: tuple[float, float]
    """Heights of a healthy base [m]."""

    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        x = super().start(batch, generator)
        return torch.cat([x[:, :3], normalize(x[:, 3:7], dim=-1), x[:, 7:]], 1)

    def state_of(self, qpos: Any, qvel: Any) -> Tensor:
        x = super().state_of(qpos, qvel)
        nq = self.world.nq
        turn = normalize(x[[4, 5, 6, 3]], dim=-1)  # MuJoCo has w first, and linear velocities in world axes
        v = torch.as_tensor(from_wxyz(x[3:7])).T @ x[nq : nq + 3]
        return torch.cat([x[:3], turn, x[7:nq], v, x[nq + 3 :]])

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        nq = self.world.nq
        v = to_rotation(x[3:7]) @ x[nq : nq + 3]
        return ca.vertcat(x[2], x[6], x[3:6], x[7:nq], v, x[nq + 3 :])

    def margin_of(self, x: SX) -> SX:
        return least(x[2] - self.heights[0], self.heights[1] - x[2])


class AntV5(Free):
    """Ant-v5: healthy between 0.2 and 1 m.

    What differs from gymnasium's default: contact forces are neither seen (as with include_cfrc_ext_in_observation=False) nor a
    cost, which is at most 0.04 a step there. The speed follows from the position after a step; gymnasium takes the position at the
    last stage of the integrator, a few millimetres off in an impact: summed over an episode, the speeds are the same.
    """

    name = "ant_v5"
    summary = "gymnasium's Ant-v5: a four-legged robot runs along x"
    training = replace(PRACTICE, iterations=800, calming=True, watch_interval=50)
    gym, file, skip = "Ant-v5", "ant", 5
    gym_options = {"include_cfrc_ext_in_observation": False}  # noqa: RUF012
    cost, noise, normal, heights = 0.5, 0.1, True, (0.2, 1.0)
    care = 4.0

    def safety_of(self, x: SX) -> SX:
        ceiling = 0.9  # [m]: in training a jump ends lower than in the task
        return least((x[2] - self.heights[0]) / 0.1, (ceiling - x[2]) / 0.25)


class HumanoidV5(Free):
    """Humanoid-v5: healthy between 1 and 2 m; the speed is that of the centre of mass.

    What differs from gymnasium's default: inertias, velocities of links, torques and contact forces are not seen, and the latter
    cost nothing. An action of 1 is a control of 0.4, the largest. The speed is as exact as that of `AntV5`.
    """

    name = "humanoid_v5"
    summary = "gymnasium's Humanoid-v5: a humanoid walks along x"
    training = replace(PRACTICE, actor=(256, 128), horizon=16)
    gym, file, skip = "Humanoid-v5", "humanoid", 5
    gym_options = {  # noqa: RUF012
        f"include_{part}_in_observation": False for part in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext")
    }
    weight, alive, cost, noise, heights = 1.25, 5.0, 0.1, 0.01, (1.0, 2.0)

    @cached_property
    def action_scale(self) -> tuple[Tensor, Tensor]:
        zero = torch.zeros(self.world.nu, dtype=torch.float64)
        return zero, zero + 0.4

    def forward(self, x: SX) -> SX:
        model = self.world.setup.scene.model
        return center_of_mass(model, Parameters.of(model), x[: self.world.nq])[1][0]
