"""Back-propagation through time: the gradient of the rewards of whole episodes, without a critic.

The plainest way to learn through a simulator, and the one that contact and chaos harm most. Without a critic, or anything random
about the starts, a policy can come to rest where no gradient leads on; so several may begin (`attempts`), and the best goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from costate.train.plan import Iteration, Schedule
from costate.train.reinforce.actor import FLOAT
from costate.train.reinforce.windowed import Rolled, WindowOptions, WindowTraining
from costate.train.run import Checkpoint
from costate.train.streams import generator
from costate.train.trainer import Best, Iterated


@dataclass(frozen=True)
class BpttOptions(WindowOptions):
    """Options of back-propagation through time."""

    algorithm: ClassVar[str] = "bptt"
    trainer: ClassVar[Any] = "costate.train.reinforce.bptt:Bptt"

    iterations: int = 200
    """Batches of episodes."""
    steps: int = 0
    """Control steps from the start; 0: the whole episode."""
    attempts: int = 1
    """Policies that begin, one after the other; the one that has earned most after its trial goes on."""
    trial: int = 30
    """Iterations of such a trial; they are part of all iterations."""
    discount: float = 1.0
    interval: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("steps", least=0)
        self.at_least("attempts", "trial")
        if self.attempts > 1 and self.attempts * self.trial >= self.iterations:
            raise ValueError(
                f"{self.attempts} attempts of {self.trial} iterations leave none of {self.iterations} to go on with: "
                "raise iterations, or lower attempts or trial"
            )

    @classmethod
    def like(cls, other: Schedule) -> Self:
        return replace(super().like(other), iterations=cls.iterations, interval=cls.interval)


class Bptt(WindowTraining):
    """A training by back-propagation through time."""

    def set_up(self, point: Checkpoint) -> None:
        self.trials = Best("trial", point.more)
        super().set_up(point)

    def iterate(self, plan: Iteration) -> Iterated:
        self._try_another(plan.number)
        return super().iterate(plan)

    def _try_another(self, number: int) -> None:
        """Begin with another policy where the trial of one is over; after the last trial, go on with the best."""
        o = self.options
        tried, within = divmod(number, o.trial)
        if o.attempts == 1 or within or not 0 < tried <= o.attempts:
            return
        self.trials.offer(self.policy, number, float(self.recent[0].mean()))
        fresh = self.task.policy(o, generator("weights", o.seed, 1 + tried)).state_dict()
        self.policy.load_state_dict(self.trials.weights if tried == o.attempts else fresh)
        self.adams["policy"].state.clear()

    def kept(self) -> dict[str, Any]:
        kept = super().kept()
        kept["more"] |= self.trials.kept()
        return kept

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
