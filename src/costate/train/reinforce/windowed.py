"""The base of algorithms that learn in windows: robots that go on, the gradient of the actor, episodes counted, checkpoints.

The gradient of the actor is found in two parts: with respect to the heads of every step by the kernel of the window
(closed_loop.py), and from there to the weights for all steps together (costate.train.dense).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from costate.train.dense.fit import BETAS
from costate.train.dense.pull import pull_back
from costate.train.plan import Iteration, Schedule
from costate.train.reinforce.actor import FLOAT, Actor
from costate.train.reinforce.closed_loop import ClosedLoop, Window
from costate.train.reinforce.critic import Critic
from costate.train.run import Checkpoint
from costate.train.streams import generator
from costate.train.trainer import Iterated, Training

RECENT = 100
"""Number of episodes whose mean return is shown."""


@dataclass(frozen=True)
class WindowOptions(Schedule):
    """Options of every algorithm that learns in windows."""

    sees_spread: ClassVar[bool] = False
    """True: the standard deviations of actions depend on the observation; False: they are numbers of their own."""

    iterations: int = 2000
    """Windows."""
    batch: int = 64
    """Robots side by side."""
    learning_rate: float = 2e-3
    """Learning rate of the actor at the start; it falls along a line to nearly zero."""
    actor: tuple[int, ...] = (128, 64, 32)
    """Units of the hidden layers of the actor."""
    discount: float = 0.99
    """Factor by which a reward counts less for every step that it comes later."""
    state_clip: float = 3000.0
    """Longest gradient of the rewards of a window with respect to the state of a robot; a longer one is shortened."""
    calming: bool = False
    """True: the noise of actions falls with the learning rate, unless the policy itself says how large it is (sapo, sac)."""
    quiet: float = 0.0
    """Part of the robots that act without noise, as a policy does when it is judged: noise hides where it comes to a stand."""
    interval: int = 25
    watch_interval: int = 0
    """Iterations from one look at the policy without noise to the next; the best one is kept, not the last. 0: no looks."""
    watch_episodes: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parts("discount", "quiet")
        self.positive("state_clip")

    def parts(self, *names: str) -> None:
        """Refuse fields that are not between 0 and 1."""
        for name in names:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")

    def positive(self, *names: str) -> None:
        """Refuse fields that are not above 0."""
        for name in names:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")


@dataclass(frozen=True)
class Rolled:
    """A window, and what its gradients are found with."""

    window: Window
    """Course of the window; differentiable in push and probe."""
    noise: Tensor
    """Noise of the actions, (B, H, m)."""
    push: Tensor
    """Zeros, (B, H, k); its gradient is that of the heads."""
    probe: Tensor
    """Zeros, (B, H, 1); its gradient is the length of that of the states."""
    seen: Tensor
    """Normalised observations that the actor acted on, (B, H, n)."""
    after: Tensor
    """Normalised observations after each step, (B, H, n)."""


class WindowTraining(Training):
    """A training in windows. An algorithm says what an iteration does with one."""

    policy: Actor

    def set_up(self, point: Checkpoint) -> None:
        o = self.options
        self.loop = ClosedLoop(self.task, self.policy.net)
        self.carry = self.loop.begin(o.batch, generator("episodes", o.seed, -1)).to(FLOAT)
        self.running = torch.zeros(2, o.batch, dtype=FLOAT)  # return and length of the episodes that go on
        self.recent = torch.zeros(2, 0, dtype=FLOAT)  # and of the latest that have ended
        self.dropped = torch.zeros((), dtype=torch.int64)
        self.critics: list[Critic] = []
        self.learnt: dict[str, nn.Module] = {"policy": self.policy}
        self.begin(generator("weights", o.seed, 1))
        self.adams = {
            name: torch.optim.Adam(m.parameters(), betas=BETAS, fused=True) for name, m in self.learnt.items()
        }
        if point.more:
            self._restore(point.more)

    def begin(self, random: torch.Generator) -> None:
        """Make what is learnt beside the policy: put critics into `critics`, and anything else into `learnt`."""

    @property
    def going(self) -> tuple[str, ...]:
        """Names of the tensors of this object with which a training goes on."""
        return "carry", "running", "recent", "dropped"

    @property
    @abstractmethod
    def horizon(self) -> int:
        """Control steps of the next window."""

    def loss(self, rolled: Rolled) -> Tensor:
        """Return what the actor minimises. An algorithm with an `iterate` of its own needs none."""
        raise NotImplementedError

    # --- an iteration ---------------------------------------------------------------------------------------------

    def iterate(self, plan: Iteration) -> Iterated:
        random = generator("episodes", self.options.seed, plan.number)
        rolled = self.roll(random)
        loss = self.loss(rolled)
        loss.backward()
        terms = {"loss": float(loss.detach())} | self.move_actor(rolled, plan.learning_rate)
        norm = terms.pop("norm")
        terms |= self.learn_more(rolled, random, plan)
        self.policy.learn_scale(rolled.window.seen.flatten(0, 1))
        self._count(rolled.window)
        self.carry = rolled.window.carry
        self.control_steps += rolled.noise.shape[0] * rolled.noise.shape[1]
        return Iterated(terms, norm, self._measures)

    def learn_more(self, rolled: Rolled, random: torch.Generator, plan: Iteration) -> dict[str, float]:
        """Learn what else there is to be learnt from a window, after the actor; return terms for the metrics."""
        return {}

    def roll(self, random: torch.Generator) -> Rolled:
        """Let all robots go on for a window."""
        o, policy, horizon = self.options, self.policy, self.horizon
        noise = torch.randn(o.batch, horizon, self.task.size[1], generator=random, dtype=FLOAT)
        fresh = self.task.fresh(o.batch * horizon, random).to(FLOAT).reshape(o.batch, horizon, -1)
        scaling = policy.mean.clone(), policy.scale
        if policy.log_std is not None:
            noise *= policy.log_std.detach().exp() * (o.rate(self.done) / o.learning_rate if o.calming else 1)
        noise[: round(o.quiet * o.batch)] = 0
        push = noise.new_zeros(o.batch, horizon, self.loop.heads, requires_grad=True)
        probe = noise.new_zeros(o.batch, horizon, 1, requires_grad=True)
        window = self.loop(self.carry, noise, fresh, scaling, o.state_clip / (o.batch * horizon), push, probe)
        seen, after = ((seen - scaling[0]) * scaling[1] for seen in (window.seen, window.after))
        return Rolled(window, noise, push, probe, seen, after)

    def move_actor(self, rolled: Rolled, rate: float) -> dict[str, float]:
        """Do a step of Adam with the gradient with respect to the heads; return terms for the metrics.

        Gradients that are not finite are left out, and counted.
        """
        adam, policy, heads = self.adams["policy"], self.policy, rolled.push.grad
        assert heads is not None
        good = heads.isfinite().all(-1, keepdim=True)
        self.dropped += (~good).sum()
        heads = torch.where(good, heads, 0.0)
        adam.zero_grad()
        pull_back(policy.net, rolled.seen.flatten(0, 1), heads.flatten(0, 1))
        if policy.log_std is not None:
            policy.log_std.grad = (heads * rolled.noise).sum((0, 1))
        norm = float(nn.utils.clip_grad_norm_(policy.parameters(), self.options.clip))
        adam.param_groups[0]["lr"] = rate
        adam.step()
        lengths = len(heads) * heads.flatten(1).norm(dim=1)
        told = {"norm": norm, "robot_gradient": float(lengths.median()), "longest_robot_gradient": float(lengths.max())}
        return told | {"noise": float(policy.spread(rolled.window.heads).mean())}

    # --- counting and keeping -------------------------------------------------------------------------------------

    def _count(self, window: Window) -> None:
        """Add up returns and lengths of episodes, and note those that have ended."""
        reward, ended = window.reward.detach(), window.ended
        for t in ended.any(0).nonzero()[:, 0].tolist() if bool(ended.any()) else []:
            self._note(reward, ended, t)
        self.running[0] += torch.where(_after_last(ended), reward, 0.0).sum(1)
        self.running[1] += _after_last(ended).sum(1)

    def _note(self, reward: Tensor, ended: Tensor, t: int) -> None:
        """Note the episodes that end with step t of a window."""
        since = _after_last(ended[:, :t])
        done = ended[:, t]
        total = self.running + torch.stack([(since * reward[:, :t]).sum(1) + reward[:, t], since.sum(1) + 1.0])
        self.recent = torch.cat([self.recent, total[:, done]], 1)[:, -RECENT:]
        self.running[:, done] = 0

    def _measures(self) -> dict[str, float]:
        shown = self.recent if self.recent.shape[1] else self.running
        return {"return": float(shown[0].mean()), "length": float(shown[1].mean()), "dropped": int(self.dropped)}

    def score(self, metrics: Any) -> tuple[float, ...]:
        return (metrics.columns["return"],)

    def row(self, metrics: Any) -> dict[str, float]:
        return {"played": metrics.columns["return"]} | super().row(metrics)

    def kept(self) -> dict[str, Any]:
        more = {name: getattr(self, name) for name in self.going}
        more |= {f"critic{k}.{key}": t for k, critic in enumerate(self.critics) for key, t in critic.kept().items()}
        for name, adam in self.adams.items():
            if name != "policy":
                more |= {f"{name}.{key}": t for key, t in self.learnt[name].state_dict().items()}
            state = adam.state_dict()["state"]
            more |= {f"adam.{name}.{i}.{key}": t for i, s in state.items() for key, t in s.items()}
        return {"moments": {}, "more": more}

    def _restore(self, more: dict[str, Tensor]) -> None:
        for name in self.going:
            setattr(self, name, more[name].clone())
        for k, critic in enumerate(self.critics):
            critic.restore(_behind(f"critic{k}.", more))
        for name, adam in self.adams.items():
            if name != "policy":
                self.learnt[name].load_state_dict(_behind(f"{name}.", more))
            for i, parameter in enumerate(adam.param_groups[0]["params"]):
                if kept := _behind(f"adam.{name}.{i}.", more):
                    adam.state[parameter] = kept


def _behind(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return copies of the tensors whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): t.clone() for name, t in tensors.items() if name.startswith(prefix)}


def _after_last(ended: Tensor) -> Tensor:
    """Return which steps of windows (B, H) come after the last end of an episode."""
    return ended.flip(1).cumsum(1).flip(1) == 0
