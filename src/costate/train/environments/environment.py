"""A task as an environment of gymnasium: one episode at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from costate.core.extras import needs
from costate.train.environments.batch import Batch
from costate.train.trainable import Trainable

try:
    import gymnasium
except ImportError as error:
    raise ImportError(needs("an environment for reinforcement learning", "gymnasium", "rl")) from error


def spaces(task: Trainable) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """Return the spaces of observations and actions."""
    seen, done = len(task.inputs), len(task.outputs)
    return (
        gymnasium.spaces.Box(-np.inf, np.inf, (seen,), np.float32),
        gymnasium.spaces.Box(-1.0, 1.0, (done,), np.float32),
    )


class Environment(gymnasium.Env[np.ndarray, np.ndarray]):
    """One episode at a time. The last step's info has `is_success` and `error`."""

    def __init__(self, task: Trainable, batch: Batch | None = None):
        self.observation_space, self.action_space = spaces(task)
        self._batch = batch or Batch(task, 1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin an episode."""
        super().reset(seed=seed)
        if seed is not None:
            self._batch.generator.manual_seed(seed)
        return self._batch.reset()[0].numpy(), {}

    def step(self, action: np.ndarray):
        """Do a step."""
        observation, reward, over = self._batch.step(torch.as_tensor(np.asarray(action, np.float32))[None])
        info = {}
        if over:
            success, error = self._batch.results()
            info = {"is_success": bool(success[0]), "error": float(error[0])}
        # The task ends there: what would happen later does not count.
        return observation[0].numpy(), float(reward[0]), over, False, info
