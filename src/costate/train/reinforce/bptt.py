"""Back-propagation through time: the gradient of the rewards of whole episodes, without a critic.

The plainest way to learn through a simulator, and the one that contact and chaos harm most: it is here to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from costate.train.plan import Schedule
from costate.train.reinforce.actor import FLOAT
from costate.train.reinforce.windowed import Rolled, WindowOptions, WindowTraining


@dataclass(frozen=True)
class BpttOptions(WindowOptions):
    """Options of back-propagation through time."""

    algorithm: ClassVar[str] = "bptt"
    trainer: ClassVar[Any] = "costate.train.reinforce.bptt:Bptt"

    iterations: int = 200
    """Batches of episodes."""
    steps: int = 0
    """Control steps from the start; 0: the whole episode."""
    discount: float = 1.0
    interval: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("steps", least=0)

    @classmethod
    def like(cls, other: Schedule) -> Self:
        return replace(super().like(other), iterations=cls.iterations, interval=cls.interval)


class Bptt(WindowTraining):
    """A training by back-propagation through time."""

    @property
    def horizon(self) -> int:
        return self.options.steps or self.task.length

    def roll(self, random: torch.Generator) -> Rolled:
        self.carry = self.loop.begin(self.options.batch, random).to(FLOAT)
        self.running.zero_()
        return super().roll(random)

    def loss(self, rolled: Rolled) -> Tensor:
        reward = rolled.window.reward
        return -(reward * self.options.discount ** torch.arange(reward.shape[1])).sum() / reward.numel()
