"""Insertions side by side with rewards of order one."""

from __future__ import annotations

from costate.tasks.insertion import Insertion
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.vector_environment import InsertionVecEnv


class ScaledEnvironment(InsertionVecEnv):
    """The environment with rewards times a factor: a critic with values of order one leaves the actor its part of the gradient."""

    def __init__(self, task: Insertion, batch: int, seed: int, rewards: RewardOptions, factor: float):
        super().__init__(task, batch, seed, rewards)
        self.factor = factor

    def step_wait(self):
        observation, reward, over, told = super().step_wait()
        return observation, self.factor * reward, over, told
