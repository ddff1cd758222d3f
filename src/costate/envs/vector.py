"""A task as a vector environment of gymnasium: all episodes are stepped by one call of the batched world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from costate.envs.batch import Batch
from costate.envs.environment import about, array, results, spaces
from costate.envs.gym import gymnasium
from costate.envs.picture import SIZE, Picture
from costate.envs.task import task_of

AutoresetMode = gymnasium.vector.AutoresetMode


class VectorEnvironment(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many episodes side by side, with autoreset as gymnasium has it.

    envs = VectorEnvironment(MyTask(), num_envs=1024)
    """

    def __init__(
        self,
        task: Any,
        num_envs: int = 1,
        render_mode: str | None = None,
        autoreset_mode: Any = AutoresetMode.NEXT_STEP,
        size: tuple[int, int] = SIZE,
        **options: Any,
    ):
        """Make environments.

        Args:
            task: A trainable task, its class or its name.
            num_envs: Number of environments.
            render_mode: "rgb_array": `render()` returns a picture of each.
            autoreset_mode: When an episode that is over begins anew: in the next step (gymnasium's default), in the same step
                (its last observation is `infos["final_obs"]`), or never by itself.
            size: Width and height of pictures [pixels].
            options: Options of the task to be changed, by name.
        """
        if render_mode == "human":
            raise ValueError("many environments have no page: render_mode is 'rgb_array' or None")
        self.task, self.num_envs, self.render_mode = task_of(task, options), num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = about(self.task) | {"render_modes": ["rgb_array"], "autoreset_mode": self.autoreset_mode}
        self.single_observation_space, self.single_action_space = spaces(self.task)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._picture = Picture(self.task, render_mode, size)
        self.batch = Batch(self.task, num_envs, seed=None)
        self._over = torch.zeros(num_envs, dtype=torch.bool)

    @torch.no_grad()
    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None):
        """Begin episodes: all, or those in `options["reset_mask"]`, bool (num_envs,).

        seed: Environment k gets seed + k, or the k-th of a list, as in gymnasium's SyncVectorEnv: its episodes are those of a
            single environment with that seed, now and when it begins anew. Without a seed all are drawn together, which is quicker.
        """
        mask = self._mask((options or {}).get("reset_mask"))
        if seed is not None:
            each = [seed + k for k in range(self.num_envs)] if isinstance(seed, int | np.integer) else list(seed)
            kept = np.ones(self.num_envs, bool) if mask is None else mask.numpy()
            self.batch.seed([int(s) if s is not None and kept[k] else None for k, s in enumerate(each)])
        observation = self.batch.reset(mask)
        self._over = torch.zeros_like(self._over) if mask is None else self._over & ~mask
        return array(observation), {}

    @torch.no_grad()
    def step(self, actions: np.ndarray):
        """Do a step of all environments; those that are over begin anew, see `autoreset_mode`."""
        given = torch.as_tensor(np.asarray(actions, np.float32).reshape(self.num_envs, -1))
        active, before = None, self._over
        if bool(before.any()):
            if self.autoreset_mode == AutoresetMode.DISABLED:
                raise gymnasium.error.ResetNeeded(
                    f"{int(before.sum())} episodes are over: reset them, options={{'reset_mask': terminated | truncated}}"
                )
            observation, active = self.batch.reset(before), ~before
            if not bool(active.any()):
                self._over, no = torch.zeros_like(before), np.zeros(self.num_envs, bool)
                return array(observation), np.zeros(self.num_envs), no, no.copy(), {}
        outcome = self.batch.step(given, active)
        over, observation, infos = outcome.over, outcome.observation, {}
        if bool(over.any()):
            infos = self._told(over)
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                infos = self._last(array(observation), over, infos)
                observation = self.batch.reset(over)
        self._over = torch.zeros_like(over) if self.autoreset_mode == AutoresetMode.SAME_STEP else over
        ended, cut = outcome.terminated.numpy().copy(), outcome.truncated.numpy().copy()
        return array(observation), outcome.reward.double().numpy(), ended, cut, infos

    def _told(self, over: torch.Tensor) -> dict[str, Any]:
        """Return the infos of episodes that are over: an array for each name, and a mask that says whom it is about."""
        infos: dict[str, Any] = {}
        whole, found = results(self.batch, over)
        for name, values in found.items():
            infos[name] = np.zeros(self.num_envs, values.dtype)
            infos[name][whole] = values
            infos[f"_{name}"] = whole.copy()
        return infos

    def _last(self, observation: np.ndarray, over: torch.Tensor, infos: dict[str, Any]) -> dict[str, Any]:
        """Return infos with the last observations of episodes that begin anew at once."""
        mask, last = over.numpy().copy(), np.full(self.num_envs, None, dtype=object)
        for k in mask.nonzero()[0]:
            last[k] = observation[k]
        return {"final_obs": last, "_final_obs": mask, "final_info": infos, "_final_info": mask.copy()}

    def _mask(self, mask: Any) -> torch.Tensor | None:
        if mask is None:
            return None
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ValueError(f"reset_mask is {mask!r}; expected a bool array ({self.num_envs},) with at least one True")
        return torch.from_numpy(mask.copy())

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a picture of each environment, if that is the mode."""
        if self.render_mode is None:
            return None
        return tuple(self._picture.drawn(state) for state in self.batch.states[-1])
