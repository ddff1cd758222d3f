"""Insertions as PPO and SAC get them: without contact, rewards of order one, and actions that are velocities of the bottle."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from costate.tasks.insertion import Insertion, draw
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.scene import ARM_Q
from costate.tasks.insertion.vector_environment import InsertionVecEnv
from costate.train.streams import generator

FASTEST = (0.3, 0.3, 0.6, 1.0, 1.0, 1.0)
"""Velocity of the bottle for actions of 1: along x, y and z [m/s], and about them [rad/s]."""


def by_tool(task: Insertion) -> Tensor:
    """Return the matrix (6, 6) from velocities of the bottle, in parts of FASTEST, to the task's actions.

    It is that of the mean start: another choice of the six actions, in which noise moves the bottle more than it tilts it.
    """
    q = draw(task, 256, generator("watch", 0), dtype=torch.float64).state[:, ARM_Q].mean(0)
    jacobian = task.arm.jacobian(q, "bottle").detach()
    scale = task.action_scale[1].double()
    return (
        torch.linalg.inv(jacobian) @ torch.diag(torch.tensor(FASTEST, dtype=torch.float64)) / scale[:, None]
    ).float()


class ScaledEnvironment(InsertionVecEnv):
    """The environment with rewards times a factor: a critic with values of order one leaves the actor its part of the gradient."""

    def __init__(self, task: Insertion, batch: int, seed: int, rewards: RewardOptions, factor: float, by: Tensor):
        super().__init__(task, batch, seed, rewards)
        self.batch.world = task.smooth
        self.factor, self.by = factor, by

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = acted(actions, self.by)

    def step_wait(self):
        observation, reward, over, told = super().step_wait()
        return observation, self.factor * reward, over, told


def acted(actions: np.ndarray, by: Tensor) -> Tensor:
    """Return the task's actions, which lie in [-1, 1]."""
    return (torch.from_numpy(np.asarray(actions, np.float32)) @ by.T).clamp(-1, 1)
