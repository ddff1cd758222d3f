"""Adaptive-horizon actor-critic (AHAC; Georgiev et al., 2024): SHAC whose windows are as long as their gradients bear.

What differs from SHAC:

    horizon    longer while the gradient of a state grows little from step to step, shorter when contact makes it grow much
    critics    two, of which the lower value counts, fitted until their error falls no further; no slow copies

The growth is that of the gradient with respect to the state, over one step, at its worst within a window: the published algorithm
measures contact forces in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from costate.train.plan import Iteration
from costate.train.reinforce.actor import FLOAT
from costate.train.reinforce.critic import Critic
from costate.train.reinforce.shac import Shac, ShacOptions
from costate.train.reinforce.windowed import Rolled


@dataclass(frozen=True)
class AhacOptions(ShacOptions):
    """Options of AHAC."""

    algorithm: ClassVar[str] = "ahac"
    trainer: ClassVar[Any] = "costate.train.reinforce.ahac:Ahac"

    target_memory: float = 0.0
    critic_passes: int = 16
    """Passes of the critics over a window at most."""
    stall: float = 0.05
    """Least part by which a pass makes the critics' error smaller; after one that does not, no other follows."""
    shortest: float = 0.25
    """Fewest steps of a window, as a part of `horizon`, with which it starts."""
    longest: float = 2.0
    """Most steps of a window, likewise."""
    growth: float = 3.0
    """Growth of a robot's state gradient over one step, at its worst in a window, that leaves the horizon as it is."""
    horizon_rate: float = 0.2
    """Steps by which the horizon changes in an iteration where the growth is far from that."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.positive("shortest", "growth", "horizon_rate")
        if not self.shortest <= 1 <= self.longest:
            raise ValueError(f"shortest is {self.shortest} and longest {self.longest}; 1 must lie between them")


class Ahac(Shac):
    """A training by AHAC."""

    def begin(self, random: torch.Generator) -> None:
        self.length = torch.tensor(float(self.options.horizon), dtype=FLOAT)
        self.critics += [Critic(self.task.size[2], self.options.critic, random) for _ in range(2)]

    @property
    def going(self) -> tuple[str, ...]:
        return *super().going, "length"

    @property
    def horizon(self) -> int:
        return max(round(float(self.length)), 1)

    def value(self, seen: Tensor) -> Tensor:
        return torch.minimum(*(critic.values(seen) for critic in self.critics))

    def learn_more(self, rolled: Rolled, random: torch.Generator, plan: Iteration) -> dict[str, float]:
        o, growth = self.options, _growth(rolled)
        change = max(-1.0, min(1.0, 1 - growth / o.growth))
        self.length = (self.length + o.horizon_rate * change).clamp(o.shortest * o.horizon, o.longest * o.horizon)
        errors = [self.fit(rolled, random, 1, plan.learning_rate)]
        while len(errors) < o.critic_passes:
            errors.append(self.fit(rolled, random, 1, plan.learning_rate))
            if errors[-1] > (1 - o.stall) * errors[-2]:
                break
        self.follow()
        terms = {"critic": errors[-1], "critic_passes": len(errors)}
        return terms | {"horizon": rolled.noise.shape[1], "growth": growth}


def _growth(rolled: Rolled) -> float:
    """Return by how much the state gradient of a robot grows over one step at its worst, the median over the robots."""
    assert rolled.probe.grad is not None
    length = rolled.probe.grad[..., 0]
    ratio = length[:, :-1] / length[:, 1:].clamp_min(1e-30)
    usable = ratio.isfinite() & ~rolled.window.ended[:, 1:] & ~rolled.window.ended[:, :-1]
    return float(torch.where(usable, ratio, 0.0).amax(1).median())
