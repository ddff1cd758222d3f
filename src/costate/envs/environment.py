"""A task as an environment of gymnasium: one episode at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from costate.envs.batch import Batch
from costate.envs.gym import gymnasium
from costate.envs.picture import SIZE, Picture
from costate.envs.task import task_of
from costate.train.trainable import Trainable


def spaces(task: Trainable) -> tuple[Any, Any]:
    """Return the spaces of observations and actions of one episode."""
    seen, done = len(task.inputs), len(task.action_scale[1])
    return (
        gymnasium.spaces.Box(-np.inf, np.inf, (seen,), np.float32),
        gymnasium.spaces.Box(-1.0, 1.0, (done,), np.float32),
    )


def about(task: Trainable) -> dict[str, Any]:
    """Return the metadata of an environment."""
    return {"render_modes": ["human", "rgb_array"], "render_fps": max(1, round(1 / task.world.dt))}


class Environment(gymnasium.Env[np.ndarray, np.ndarray]):
    """One episode at a time. The last step's info has `is_success` and `error`, in the task's unit.

    env = Environment(MyTask(), render_mode="rgb_array")
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": 50}  # noqa: RUF012  (as gymnasium has it)

    def __init__(
        self,
        task: Any,
        render_mode: str | None = None,
        size: tuple[int, int] = SIZE,
        batch: Batch | None = None,
        **options: Any,
    ):
        """Make an environment.

        Args:
            task: A trainable task, its class or its name.
            render_mode: "rgb_array": `render()` returns a picture; "human": a page in the browser shows every step.
            size: Width and height of pictures [pixels].
            batch: Episodes of another kind than `Batch`.
            options: Options of the task to be changed, by name.
        """
        self.task = task_of(task, options) if batch is None else batch.task
        self.metadata = about(self.task)
        self.observation_space, self.action_space = spaces(self.task)
        self.render_mode = render_mode
        self._picture = Picture(self.task, render_mode, size)
        self._batch = Batch(self.task, 1, seed=None) if batch is None else batch

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin an episode."""
        super().reset(seed=seed)
        if seed is not None:
            self._batch.seed(seed)
        with torch.no_grad():
            observation = self._batch.reset()
        self._picture.begin(self._batch.states[-1][0])
        return array(observation)[0], {}

    def step(self, action: np.ndarray):
        """Do a step."""
        with torch.no_grad():
            given = torch.as_tensor(np.asarray(action, np.float32))[None]
            observation, reward, terminated, truncated = self._batch.step(given)
            ended, cut = bool(terminated), bool(truncated)
            info = results(self._batch, terminated | truncated)[1] if ended or cut else {}
        if self.render_mode == "human":
            self._picture.show(self._batch.states[-1][0])
        return array(observation)[0], float(reward), ended, cut, {k: v[0].item() for k, v in info.items()}

    def render(self) -> Any:
        """Return a picture of the state, (height, width, 3), if that is the mode."""
        return self._picture.drawn(self._batch.states[-1][0]) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the page, if there is one."""
        self._picture.close()


def array(tensor: torch.Tensor) -> np.ndarray:
    """Return an array of float32 of its own."""
    return tensor.detach().to(torch.float32).numpy().copy()


def results(batch: Batch, over: torch.Tensor) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return which episodes that are over can be judged, bool (B,): those that had all their steps; and what is known of each of
    them, (b,)."""
    whole = over & (batch.times == batch.length)
    if batch.task.stationary or not bool(whole.any()):
        return whole.numpy(), {}
    success, error = batch.results(whole)
    return whole.numpy(), {"is_success": success.numpy(), "error": error.double().numpy()}
