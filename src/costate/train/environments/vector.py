"""A task as stable-baselines3 takes it: many environments behind one call, stepped together by the batched world."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from costate.core.extras import needs
from costate.train.environments.batch import Batch
from costate.train.environments.environment import spaces
from costate.train.trainable import Trainable

try:
    from stable_baselines3.common.vec_env.base_vec_env import VecEnv
except ImportError as error:
    raise ImportError(needs("a vector environment", "stable-baselines3", "rl")) from error


class VectorEnvironment(VecEnv):
    """B environments in step: all episodes are equally long."""

    render_mode = None

    def __init__(self, task: Trainable, batch: int, seed: int = 0):
        self._begin(Batch(task, batch, seed))

    def _begin(self, batch: Any) -> None:
        self.batch = batch
        self._actions = torch.zeros(batch.batch, len(batch.task.outputs), dtype=torch.float32)
        self._total = np.zeros(batch.batch)
        super().__init__(batch.batch, *spaces(batch.task))

    def reset(self) -> np.ndarray:
        self._total[:] = 0
        return self.batch.reset().numpy()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = torch.as_tensor(np.asarray(actions, np.float32))

    def step_wait(self):
        b = self.batch
        observation, reward, over = b.step(self._actions)
        rewards = reward.numpy()
        self._total += rewards
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if over:
            success, error = (x.numpy() for x in b.results())
            last = observation.numpy()
            for k, info in enumerate(infos):
                info["terminal_observation"] = last[k]
                info["is_success"] = bool(success[k])
                info["episode"] = {"r": float(self._total[k]), "l": b.length, "error": float(error[k])}
            return self.reset(), rewards, np.ones(self.num_envs, bool), infos
        return observation.numpy(), rewards, np.zeros(self.num_envs, bool), infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices=None) -> list[Any]:
        return [getattr(self, attr_name)] * len(self._selected(indices))

    def set_attr(self, attr_name: str, value: Any, indices=None) -> None:
        raise NotImplementedError("environments of a batch share their attributes")

    def env_method(self, method_name: str, *args: Any, indices=None, **kwargs: Any) -> list[Any]:
        raise NotImplementedError("environments of a batch are not objects of their own")

    def env_is_wrapped(self, wrapper_class: type, indices=None) -> list[bool]:
        return [False] * len(self._selected(indices))

    def _selected(self, indices: int | Iterable[int] | None) -> list[int]:
        return [indices] if isinstance(indices, int) else list(range(self.num_envs) if indices is None else indices)
