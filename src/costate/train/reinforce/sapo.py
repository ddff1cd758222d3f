"""Soft analytic policy optimisation (SAPO; Xing et al., 2025): SHAC with a reward for being undecided.

What differs from SHAC:

    reward     r - temperature * log pi(action | observation), in the actor's objective and in what the critics learn
    spread     standard deviations depend on the observation
    critics    two, of which the actor takes the mean and their own returns the lower value; no slow copies
    temperature   rises while the entropy is below its target, and falls above it
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from costate.train.plan import Iteration
from costate.train.reinforce.actor import FLOAT
from costate.train.reinforce.critic import Critic
from costate.train.reinforce.shac import Shac, ShacOptions
from costate.train.reinforce.windowed import Rolled


@dataclass(frozen=True)
class SapoOptions(ShacOptions):
    """Options of SAPO."""

    algorithm: ClassVar[str] = "sapo"
    trainer: ClassVar[Any] = "costate.train.reinforce.sapo:Sapo"
    sees_spread: ClassVar[bool] = True

    clip: float = 0.5
    """Longest gradient; a longer one is shortened to this."""
    critic_rate: float = 5e-4
    target_memory: float = 0.0
    entropy: float = -0.5
    """Target of the entropy of the actions, per action."""
    temperature: float = 1.0
    """Weight of the entropy at the start."""
    temperature_rate: float = 5e-3
    """Learning rate of the weight of the entropy at the start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("temperature", "temperature_rate")


class Temperature(nn.Module):
    """Weight of the entropy: the exponential of a number that is learnt."""

    def __init__(self, start: float):
        super().__init__()
        self.log = nn.Parameter(torch.tensor([math.log(start)], dtype=FLOAT))

    @property
    def value(self) -> float:
        """Weight of the entropy now."""
        return float(self.log.detach().exp())


class Sapo(Shac):
    """A training by SAPO."""

    def begin(self, random: torch.Generator) -> None:
        o = self.options
        self.critics += [Critic(self.task.size[2], o.critic, random, nn.SiLU) for _ in range(2)]
        self.learnt["temperature"] = self.weight = Temperature(o.temperature)

    def value(self, seen: Tensor) -> Tensor:
        values = torch.stack([critic.values(seen) for critic in self.critics])
        return values.mean(0) if torch.is_grad_enabled() else values.amin(0)

    def earned(self, rolled: Rolled) -> Tensor:
        self.entropy = -self.policy.act(rolled.window.heads, rolled.noise)[1]
        return rolled.window.reward + self.weight.value * self.entropy

    def learn_more(self, rolled: Rolled, random: torch.Generator, plan: Iteration) -> dict[str, float]:
        o, adam, entropy = self.options, self.adams["temperature"], self.entropy.detach().mean()
        too_much = entropy - o.entropy * self.policy.outputs
        self.weight.log.grad = (too_much * self.weight.value).reshape(1)
        adam.param_groups[0]["lr"] = plan.learning_rate * o.temperature_rate / o.learning_rate
        adam.step()
        terms = {"entropy": float(entropy), "temperature": self.weight.value}
        return super().learn_more(rolled, random, plan) | terms
