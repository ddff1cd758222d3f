"""A task as stable-baselines3 takes it: many environments behind one call, stepped together by the batched world."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from costate.core.extras import needs
from costate.envs.batch import Batch
from costate.envs.environment import array, results, spaces
from costate.envs.task import task_of

try:
    from stable_baselines3.common.vec_env.base_vec_env import VecEnv
except ImportError as error:
    raise ImportError(needs("costate.envs.stable_baselines", "stable-baselines3", "rl")) from error


class StableBaselinesEnvironment(VecEnv):
    """B environments, each of which begins anew in the step in which its episode is over."""

    render_mode = None

    def __init__(self, task: Any, batch: int, seed: int | None = 0, **options: Any):
        """Make environments of a trainable task, its class or its name; options: of the task to be changed, by name."""
        self._begin(Batch(task_of(task, options), batch, seed))

    def _begin(self, batch: Batch) -> None:
        self.batch = batch
        self._actions = torch.zeros(batch.batch, len(batch.task.outputs))
        self._total, self._steps = np.zeros(batch.batch), np.zeros(batch.batch, int)
        super().__init__(batch.batch, *spaces(batch.task))

    @torch.no_grad()
    def reset(self) -> np.ndarray:
        if self._seeds[0] is not None:
            self.batch.seed(self._seeds[0])
        self._reset_seeds()
        self._total[:], self._steps[:] = 0, 0
        return array(self.batch.reset())

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = torch.as_tensor(np.asarray(actions, np.float32))

    @torch.no_grad()
    def step_wait(self):
        outcome = self.batch.step(self._actions)
        observation, rewards, over = array(outcome.observation), array(outcome.reward), outcome.over
        self._total += rewards
        self._steps += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if bool(over.any()):
            whole, told = results(self.batch, over)
            for k in over.nonzero()[:, 0].tolist():
                episode = {"r": float(self._total[k]), "l": int(self._steps[k])}
                infos[k]["terminal_observation"] = observation[k].copy()
                infos[k]["TimeLimit.truncated"] = bool(outcome.truncated[k])
                if told and whole[k]:
                    row = int(whole[:k].sum())
                    infos[k]["is_success"] = bool(told["is_success"][row])
                    episode["error"] = float(told["error"][row])
                infos[k]["episode"] = episode
                self._total[k], self._steps[k] = 0, 0
            observation = array(self.batch.reset(over))
        return observation, rewards, over.numpy().copy(), infos

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
