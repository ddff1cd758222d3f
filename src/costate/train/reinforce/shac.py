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
from torch import Tensor, nn

from costate.train.plan import Iteration
from costate.train.reinforce.actor import perceptron
from costate.train.reinforce.closed_loop import Window
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
    critic_passes: int = 4
    """Passes of the critic over a window."""
    minibatches: int = 4
    """Parts of such a pass."""
    target_memory: float = 0.2
    """Part of the target critic that stays after an iteration."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("horizon", "critic_passes", "minibatches")
        self.parts("trace", "target_memory")
        self.positive("critic_rate")


class Shac(WindowTraining):
    """A training by SHAC."""

    def critics(self, random: torch.Generator) -> dict[str, nn.Module]:
        made = [perceptron(self.task.size[2], self.options.critic, 1, random) for _ in range(2)]
        made[1].load_state_dict(made[0].state_dict())
        self.slow["target"] = made[1]
        return {"critic": made[0]}

    @property
    def horizon(self) -> int:
        return self.options.horizon

    # --- values ---------------------------------------------------------------------------------------------------

    def value(self, seen: Tensor) -> Tensor:
        """Return the value (N,) of observations (N, n)."""
        return self.slow["target"](seen)[:, 0]

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
        found, later = torch.empty_like(values), values[:, -1]
        for t in reversed(range(values.shape[1])):
            mixed = torch.lerp(values[:, t], later, o.trace)
            later = reward[:, t] + o.discount * torch.where(window.ended[:, t], values[:, t], mixed)
            found[:, t] = later
        return found

    # --- learning -------------------------------------------------------------------------------------------------

    def learn_more(self, rolled: Rolled, random: torch.Generator, plan: Iteration) -> dict[str, float]:
        o = self.options
        seen, returns = rolled.seen.flatten(0, 1), self.returns.flatten()
        for _ in range(o.critic_passes):
            error = self.fit(seen, returns, random, plan.learning_rate * o.critic_rate / o.learning_rate)
        with torch.no_grad():
            for name, slow in self.slow.items():
                fast = self.learnt[name.replace("target", "critic")]
                for kept, new in zip(slow.parameters(), fast.parameters(), strict=True):
                    kept.lerp_(new, 1 - o.target_memory)
        return {"critic": error}

    def fit(self, seen: Tensor, returns: Tensor, random: torch.Generator, rate: float) -> float:
        """Do a pass of the critics over observations and returns; return the mean square error."""
        o, errors = self.options, []
        critics = [name for name in self.learnt if name.startswith("critic")]
        for part in torch.randperm(len(seen), generator=random).chunk(o.minibatches):
            for name in critics:
                adam = self.adams[name]
                adam.param_groups[0]["lr"] = rate
                adam.zero_grad()
                loss = (self.learnt[name](seen[part])[:, 0] - returns[part]).square().mean()
                loss.backward()
                nn.utils.clip_grad_norm_(self.learnt[name].parameters(), o.clip)
                adam.step()
                errors.append(loss.detach())
        return float(torch.stack(errors).mean())
