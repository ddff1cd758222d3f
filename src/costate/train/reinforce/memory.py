"""Samples of steps that are learnt from again and again: what was seen and done, and what came of it.

A sample may say how its outcome, observation and reward, changes with the action: J = d (observation after, reward) / d action,
from the compiled step, all rows of it. Then it stands for all actions near the one that was taken (`displaced`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from costate.core.fork import cached_property
from costate.kernel import Kernel, ProgramBuilder
from costate.train.reinforce.rewarded import RewardedTask


@dataclass(frozen=True)
class Samples:
    """N steps."""

    seen: Tensor
    """Observations that were acted on, (N, n)."""
    action: Tensor
    """Actions, (N, m)."""
    after: Tensor
    """Observations after the step, (N, n)."""
    reward: Tensor
    """Rewards, (N, 1)."""
    goes_on: Tensor
    """1 where the episode goes on or was only cut off, 0 where nothing comes after, (N, 1)."""
    slope: Tensor
    """Jacobian of (observation after, reward) in the action, row by row, (N, (n + 1) m); or nothing, (N, 0)."""

    @property
    def J(self) -> Tensor:
        """Jacobian of the observation after the step in the action, (N, n, m)."""
        return self.slope.unflatten(1, (-1, self.action.shape[1]))[:, :-1]

    @property
    def reward_slope(self) -> Tensor:
        """Gradient of the reward in the action, (N, m)."""
        return self.slope.unflatten(1, (-1, self.action.shape[1]))[:, -1]

    def displaced(self, by: Tensor) -> Samples:
        """Return samples of actions that differ by a little, (N, m): what would have happened, but for errors O(by^2)."""
        moved = torch.einsum("bij,bj->bi", self.J, by)
        earned = (self.reward_slope * by).sum(1, keepdim=True)
        return replace(self, action=self.action + by, after=self.after + moved, reward=self.reward + earned)


class Memory:
    """The latest samples, up to a capacity; one tensor, so that it fits into a checkpoint."""

    def __init__(self, capacity: int, sizes: Sequence[int], dtype: torch.dtype):
        """Make an empty memory. sizes: those of the fields of a sample, in their order."""
        self.sizes = list(sizes)
        self.rows = torch.zeros(capacity, sum(sizes), dtype=dtype)
        self.count = torch.zeros((), dtype=torch.int64)
        """Number of samples that were ever added."""

    def __len__(self) -> int:
        return min(int(self.count), len(self.rows))

    def add(self, samples: Samples) -> None:
        """Take samples in, in place of the oldest if there is no room."""
        rows = torch.cat([getattr(samples, name) for name in Samples.__dataclass_fields__], 1)[-len(self.rows) :]
        at = (int(self.count) + torch.arange(len(rows))) % len(self.rows)
        self.rows[at] = rows
        self.count += len(rows)

    def draw(self, number: int, random: torch.Generator) -> Samples:
        """Return random samples."""
        at = torch.randint(len(self), (number,), generator=random)
        return Samples(*self.rows[at].split(self.sizes, 1))


class Outcomes:
    """The outcome of actions in a task, observation and reward, and its Jacobian."""

    def __init__(self, task: RewardedTask):
        self.task = task
        self.varied = sum(task.varied_sizes.values())

    @cached_property
    def kernel(self) -> Kernel:
        """Kernel (state, action, time after the step, varied values) -> outcome: observation after the step, then the reward."""
        e, b = self.task, ProgramBuilder(f"outcome.{self.task.name}")
        nx, m, _ = e.size
        x, action, time = b.inputs(state=nx, action=m, time=1)
        values = [b.input("varied", self.varied)] if self.varied else []
        after, *_ = b.call(e.motion, x, action, *values)
        observation, reward, _ = b.trace(e.taught, x, action, after, time)
        b.output("outcome", b.concat(observation, reward))
        return b.kernel()

    def slope(self, state: Tensor, action: Tensor, time: Tensor, varied: Tensor | None = None) -> Tensor:
        """Return d outcome / d action, (..., n + 1, m). varied: values of what the task varies, (..., p), if anything."""
        more = {"varied": varied} if self.varied else {}
        with torch.no_grad():
            return self.kernel.jacobian("outcome", "action")(state=state, action=action, time=time, **more)
