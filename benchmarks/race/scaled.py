"""Insertions as PPO and SAC get them: without contact, with rewards of order one, and in coordinates that suit trial and error."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box

from benchmarks.race.coordinates import SEEN, Coordinates
from costate.tasks.insertion import Insertion
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.vector_environment import InsertionVecEnv


class ScaledEnvironment(InsertionVecEnv):
    """The environment in these coordinates. Rewards times a factor: a critic with values of order one leaves the actor its part of
    the gradient."""

    def __init__(self, task: Insertion, batch: int, seed: int, rewards: RewardOptions, factor: float):
        super().__init__(task, batch, seed, rewards)
        self.batch.world = task.smooth
        self.factor, self.coordinates = factor, Coordinates(task)
        self.observation_space = Box(-np.inf, np.inf, (SEEN,), np.float32)

    def reset(self) -> np.ndarray:
        return self._seen(super().reset())

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = self.coordinates.acted(torch.from_numpy(np.asarray(actions)), self.batch.observe())

    def step_wait(self) -> Any:
        observation, reward, over, told = super().step_wait()
        if over.any():  # all at once
            ends = self._seen(np.stack([each["terminal_observation"] for each in told]))
            for each, end in zip(told, ends, strict=True):
                each["terminal_observation"] = end
        return self._seen(observation), self.factor * reward, over, told

    def _seen(self, observation: np.ndarray) -> np.ndarray:
        return self.coordinates.seen(torch.from_numpy(observation)).numpy()
