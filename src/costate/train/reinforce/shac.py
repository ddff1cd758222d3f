"""Short-horizon actor-critic (SHAC; Xu et al., 2022): gradients through windows of steps, and a critic for what comes after.

An iteration:

    window     B robots go on for H steps from where they are, with noise
    actor      maximise discounted rewards of the window + value of where it ends, through the simulator
    critic     regress TD(lambda) returns of the window
    target     a slow copy of the critic, which values the ends

The gradient of the actor is found in two parts: with respect to the mean of every action by the kernel of the window
(closed_loop.py), and from there to the weights by torch, for all steps together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from costate.train.plan import Iteration, Schedule
from costate.train.reinforce.actor import FLOAT, Actor, perceptron
from costate.train.reinforce.closed_loop import ClosedLoop, Window
from costate.train.run import Checkpoint
from costate.train.streams import generator
from costate.train.trainer import Iterated, Training

BETAS = (0.7, 0.95)
"""Memories of Adam: short ones, since what is learnt from changes with the policy."""
RECENT = 100
"""Number of episodes whose mean return is shown."""


@dataclass(frozen=True)
class ShacOptions(Schedule):
    """Options of SHAC."""

    trainer: ClassVar[Any] = "costate.train.reinforce.shac:Shac"

    iterations: int = 2000
    """Windows."""
    batch: int = 64
    """Robots side by side."""
    horizon: int = 32
    """Control steps of a window."""
    learning_rate: float = 2e-3
    """Learning rate of the actor at the start; it falls along a line to nearly zero."""
    critic_rate: float = 2e-3
    """Learning rate of the critic at the start."""
    actor: tuple[int, ...] = (128, 64, 32)
    """Units of the hidden layers of the actor."""
    critic: tuple[int, ...] = (64, 64)
    """Units of the hidden layers of the critic."""
    discount: float = 0.99
    """Factor by which a reward counts less for every step that it comes later."""
    trace: float = 0.95
    """Lambda of TD(lambda): 0 trusts the critic after one step, 1 not before the end of the window."""
    critic_passes: int = 16
    """Passes of the critic over a window."""
    minibatches: int = 4
    """Parts of such a pass."""
    target_memory: float = 0.2
    """Part of the target critic that stays after an iteration."""
    state_clip: float = 3000.0
    """Longest gradient of the rewards of a window with respect to the state of a robot; a longer one is shortened."""
    interval: int = 25
    watch_interval: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("horizon", "critic_passes", "minibatches")
        for name in ("discount", "trace", "target_memory"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")
        for name in ("critic_rate", "state_clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")


class Shac(Training):
    """A training by SHAC."""

    policy: Actor

    def set_up(self, point: Checkpoint) -> None:
        o, task = self.options, self.task
        self.loop = ClosedLoop(task, self.policy.net)
        weights = generator("weights", o.seed, 1)
        self.critic, self.target = (perceptron(task.size[2], o.critic, 1, weights) for _ in range(2))
        self.target.load_state_dict(self.critic.state_dict())
        self.adams = [torch.optim.Adam(m.parameters(), betas=BETAS, fused=True) for m in (self.policy, self.critic)]
        self.carry = self.loop.begin(o.batch, generator("episodes", o.seed, -1)).to(FLOAT)
        self.running = torch.zeros(2, o.batch, dtype=FLOAT)  # return and length of the episodes that go on
        self.recent = torch.zeros(2, 0, dtype=FLOAT)  # and of the latest that have ended
        self.dropped = 0
        if point.more:
            self._restore(point)

    # --- an iteration ---------------------------------------------------------------------------------------------

    def iterate(self, plan: Iteration) -> Iterated:
        o, random = self.options, generator("episodes", self.options.seed, plan.number)
        noise = torch.randn(o.batch, o.horizon, self.task.size[1], generator=random, dtype=FLOAT)
        fresh = self.task.fresh(o.batch * o.horizon, random).to(FLOAT).reshape(o.batch, o.horizon, -1)
        policy, scaling = self.policy, (self.policy.mean.clone(), self.policy.scale)
        noise *= policy.log_std.detach().exp()
        push = torch.zeros_like(noise, requires_grad=True)
        window = self.loop(self.carry, noise, fresh, scaling, o.state_clip / (o.batch * o.horizon), push)
        values = self._values((window.after - scaling[0]) * scaling[1], window.fell)
        loss = self._loss(window, values)
        loss.backward()
        seen = (window.seen - scaling[0]) * scaling[1]
        norm = self._move_actor(seen, self._healthy(push.grad), noise, plan.learning_rate)
        error = self._fit_critic(seen, self._returns(window, values.detach()), random, plan)
        policy.learn_scale(window.seen.flatten(0, 1))
        self._count(window)
        self.carry = window.carry
        self.control_steps += o.batch * o.horizon
        terms = {"loss": float(loss.detach()), "critic": error, "noise": float(policy.log_std.detach().exp().mean())}
        return Iterated(terms, norm, self._measures)

    def _values(self, seen: Tensor, fell: Tensor) -> Tensor:
        """Return the value of what comes after each step, (B, H): nothing, where an episode ended before its time."""
        return torch.where(fell, 0.0, self.target(seen)[..., 0])

    def _loss(self, window: Window, values: Tensor) -> Tensor:
        """Return minus the discounted rewards of the window and the value of its ends, per step."""
        o = self.options
        ends = window.ended.clone()
        ends[:, -1] = True
        time = torch.arange(o.horizon)
        began = torch.where(window.ended, time + 1, 0).cummax(1).values.roll(1, 1)
        began[:, 0] = 0
        discount = o.discount ** (time - began)
        earned = discount * (window.reward + torch.where(ends, o.discount * values, 0.0))
        return -earned.sum() / (o.batch * o.horizon)

    def _healthy(self, push: Tensor | None) -> Tensor:
        """Return the gradients with respect to the heads without those that are not finite; count these."""
        assert push is not None
        good = push.isfinite().all(-1, keepdim=True)
        self.dropped += int((~good).sum())
        return torch.where(good, push, 0.0)

    def _move_actor(self, seen: Tensor, push: Tensor, noise: Tensor, rate: float) -> float:
        """Do a step of Adam. push: gradient with respect to the means (B, H, m). Return the length of the whole gradient."""
        adam, policy = self.adams[0], self.policy
        adam.zero_grad()
        policy.net(seen).backward(push)
        policy.log_std.grad = (push * noise).sum((0, 1))
        norm = float(nn.utils.clip_grad_norm_(policy.parameters(), self.options.clip))
        adam.param_groups[0]["lr"] = rate
        adam.step()
        return norm

    def _returns(self, window: Window, values: Tensor) -> Tensor:
        """Return what the critic is to learn: TD(lambda) returns of every step, (B, H). The end of the window counts as one."""
        o = self.options
        found, later = torch.empty_like(values), values[:, -1]
        for t in reversed(range(o.horizon)):
            mixed = torch.lerp(values[:, t], later, o.trace)
            later = window.reward[:, t].detach() + o.discount * torch.where(window.ended[:, t], values[:, t], mixed)
            found[:, t] = later
        return found

    def _fit_critic(self, seen: Tensor, returns: Tensor, random: torch.Generator, plan: Iteration) -> float:
        """Fit the critic to returns; then let the target follow. Return the mean square error of the last part."""
        o, adam = self.options, self.adams[1]
        seen, returns = seen.flatten(0, 1), returns.flatten()
        adam.param_groups[0]["lr"] = plan.learning_rate * o.critic_rate / o.learning_rate
        for _ in range(o.critic_passes):
            for part in torch.randperm(len(seen), generator=random).chunk(o.minibatches):
                adam.zero_grad()
                loss = (self.critic(seen[part])[:, 0] - returns[part]).square().mean()
                loss.backward()
                nn.utils.clip_grad_norm_(self.critic.parameters(), o.clip)
                adam.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                slow.lerp_(fast, 1 - o.target_memory)
        return float(loss.detach())

    # --- counting and keeping -------------------------------------------------------------------------------------

    def _count(self, window: Window) -> None:
        """Add up returns and lengths of episodes, and note those that have ended."""
        for t in range(self.options.horizon):
            self.running += torch.stack([window.reward[:, t].detach(), torch.ones(len(self.carry), dtype=FLOAT)])
            if (ended := window.ended[:, t]).any():
                self.recent = torch.cat([self.recent, self.running[:, ended]], 1)[:, -RECENT:]
                self.running[:, ended] = 0

    def _measures(self) -> dict[str, float]:
        shown = self.recent if self.recent.shape[1] else self.running
        return {"return": float(shown[0].mean()), "length": float(shown[1].mean()), "dropped": self.dropped}

    def kept(self) -> dict[str, Any]:
        more = {
            "carry": self.carry,
            "running": self.running,
            "recent": self.recent,
            "dropped": torch.tensor(self.dropped),
        }
        for name, module in self._learnt().items():
            more |= {f"{name}.{key}": t for key, t in module.state_dict().items()}
        for k, adam in enumerate(self.adams):
            more |= {f"adam{k}.{i}.{key}": t for i, s in adam.state_dict()["state"].items() for key, t in s.items()}
        return {"moments": {}, "more": more}

    def _restore(self, point: Checkpoint) -> None:
        more = point.more
        self.carry, self.running, self.recent = (more[k].clone() for k in ("carry", "running", "recent"))
        self.dropped = int(more["dropped"])
        for name, module in self._learnt().items():
            module.load_state_dict({key: more[f"{name}.{key}"] for key in module.state_dict()})
        for k, adam in enumerate(self.adams):
            for i, parameter in enumerate(adam.param_groups[0]["params"]):
                begin = f"adam{k}.{i}."
                adam.state[parameter] = {
                    n.removeprefix(begin): t.clone() for n, t in more.items() if n.startswith(begin)
                }

    def _learnt(self) -> dict[str, nn.Module]:
        return {"critic": self.critic, "target": self.target}
