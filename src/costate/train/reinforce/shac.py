"""Short-horizon actor-critic (SHAC; Xu et al., 2022): gradients through windows of steps, and a critic for what comes after.

An iteration:

    window     B robots go on for H steps from where they are, with noise
    actor      maximise discounted rewards of the window + value of where it ends, through the simulator
    critic     regress TD(lambda) returns of the window
    target     a slow copy of the critic, which values the ends
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from costate.train.plan import Iteration
from costate.train.reinforce.closed_loop import Window
from costate.train.reinforce.critic import Critic
from costate.train.reinforce.windowed import Rolled, WindowOptions, WindowTraining


@dataclass(frozen=True)
class ShacOptions(WindowOptions):
    """Options of SHAC."""

    algorithm: ClassVar[str] = "shac"
    trainer: ClassVar[Any] = "costate.train.reinforce.shac:Shac"

    horizon: int = 32
    """Control steps of a window."""
    critic_rate: float = 2e-3
    """Learning rate of the critic at the start."""
    critic: tuple[int, ...] = (64, 64)
    """Units of the hidden layers of the critic."""
    trace: float = 0.95
    """Lambda of TD(lambda): 0 trusts the critic after one step, 1 not before the end of the window."""
    critic_passes: int = 8
    """Passes of the critic over a window."""
    minibatches: int = 4
    """Parts of such a pass."""
    target_memory: float = 0.2
    """Part of the target critic that stays after an iteration."""
    critic_alone: int = 0
    """Iterations at the beginning in which the critic learns alone: a policy of another run (--start) is not spoilt meanwhile."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("horizon", "critic_passes", "minibatches")
        self.at_least("critic_alone", least=0)
        self.parts("trace", "target_memory")
        self.positive("critic_rate")


class Shac(WindowTraining):
    """A training by SHAC."""

    def begin(self, random: torch.Generator) -> None:
        self.critics.append(Critic(self.task.size[2], self.options.critic, random))

    @property
    def horizon(self) -> int:
        return self.options.horizon

    # --- values ---------------------------------------------------------------------------------------------------

    def value(self, seen: Tensor) -> Tensor:
        """Return the value (N,) of observations (N, n)."""
        return self.critics[0].values(seen)

    def earned(self, rolled: Rolled) -> Tensor:
        """Return what the steps of a window earn, (B, H)."""
        return rolled.window.reward

    def loss(self, rolled: Rolled) -> Tensor:
        """Return minus the discounted rewards of a window and the value of its ends, per step; keep what the critic learns."""
        window, reward = rolled.window, self.earned(rolled)
        batch, horizon = reward.shape
        ends = window.ended.clone()
        ends[:, -1] = True
        valued = ends & ~window.fell  # nothing comes after a fall
        last = torch.zeros_like(reward).masked_scatter(valued, self.value(rolled.after[valued]))
        earned = self._discount(window) * (reward + self.options.discount * last)
        with torch.no_grad():
            values = torch.where(window.fell, 0.0, self.value(rolled.after.flatten(0, 1)).view(batch, horizon))
            self.returns = self._returns(window, reward, values)
        return -earned.sum() / (batch * horizon)

    def _discount(self, window: Window) -> Tensor:
        """Return by what rewards count less, (B, H): counted from the beginning of the window, or of an episode within it."""
        time = torch.arange(window.ended.shape[1])
        began = torch.where(window.ended, time + 1, 0).cummax(1).values.roll(1, 1)
        began[:, 0] = 0
        return self.options.discount ** (time - began)

    def _returns(self, window: Window, reward: Tensor, values: Tensor) -> Tensor:
        """Return what the critic is to learn: TD(lambda) returns of every step, (B, H). The end of the window counts as one."""
        o = self.options
        later = o.trace * ~window.ended  # part of a value that is taken from the next return
        first = torch.addcmul(reward, values, 1 - later, value=o.discount).T.contiguous()
        later = (o.discount * later).T.contiguous()
        found, next_ = torch.empty_like(first), values[:, -1]
        for t in reversed(range(len(first))):
            next_ = torch.addcmul(first[t], later[t], next_, out=found[t])
        return found.T

    # --- learning -------------------------------------------------------------------------------------------------

    def move_actor(self, rolled: Rolled, rate: float) -> dict[str, float]:
        return super().move_actor(rolled, 0.0 if self.done < self.options.critic_alone else rate)

    def learn_more(self, rolled: Rolled, random: torch.Generator, plan: Iteration) -> dict[str, float]:
        error = self.fit(rolled, random, self.options.critic_passes, plan.learning_rate)
        self.follow()
        return {"critic": error}

    def fit(self, rolled: Rolled, random: torch.Generator, passes: int, learning_rate: float) -> float:
        """Fit the critics to the returns of a window; return the mean square error. learning_rate: that of the actor."""
        o, rate = self.options, learning_rate * self.options.critic_rate / self.options.learning_rate
        seen, returns = rolled.seen.flatten(0, 1), self.returns.flatten()
        errors = [critic.fit(seen, returns, random, passes, o.minibatches, rate, o.clip) for critic in self.critics]
        return sum(errors) / len(errors)

    def follow(self) -> None:
        """Let the copies of the critics that give values follow them."""
        for critic in self.critics:
            critic.follow(self.options.target_memory)
