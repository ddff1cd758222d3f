"""Episodes of a task side by side, one step at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from costate.train.episode import Trajectory
from costate.train.trainable import Trainable


class Batch:
    """B episodes side by side, which start and end together."""

    def __init__(self, task: Trainable, batch: int, seed: int = 0):
        self.task, self.batch, self.length = task, batch, task.steps
        self.generator = torch.Generator().manual_seed(seed)
        self.episodes: Any = None
        self.states: list[Tensor] = []
        self.actions: list[Tensor] = []

    def reset(self) -> Tensor:
        """Begin new episodes; return their observations (B, n)."""
        self.episodes = self.task.draw(self.batch, self.generator)
        self.states, self.actions = [self.episodes.state], []
        return self._observation()

    @torch.no_grad()
    def step(self, action: Tensor) -> tuple[Tensor, Tensor, bool]:
        """Do a step; return observations (B, n), rewards (B,), and whether the episodes are over."""
        task, e = self.task, self.episodes
        self.actions.append(action.clamp(-1.0, 1.0))
        params = {k: v for k, v in e.params.items() if k in task.world.setup.parameters}
        state = task.disturb(self.states[-1], len(self.actions) - 1, e)
        self.states.append(task.world.step(state, task.control(task.applied(self.actions, e)), params))
        return self._observation(), self.rewards(), len(self.actions) == self.length

    def _observation(self) -> Tensor:
        return self.task.observe(self.states[-1], len(self.actions), self.episodes)

    def rewards(self) -> Tensor:
        """Return the rewards of the last step, (B,)."""
        return self.task.reward(self.trajectory())

    def trajectory(self) -> Trajectory:
        """Return what has happened so far."""
        return Trajectory(torch.stack(self.states), torch.stack(self.actions), self.episodes)

    def results(self) -> tuple[Tensor, Tensor]:
        """Return success (B,) and error (B,) of episodes that are over."""
        verdict = self.task.judge(self.trajectory())
        return verdict.success, verdict.error
