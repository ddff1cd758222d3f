"""Tasks that are learnt by reward: a world, what a policy sees of it, what it is rewarded for, and when an episode ends.

What a task says of a step are formulas of symbols, as those of the physics are, and become part of the same compiled code: a kernel
of a window of steps with the policy inside (closed_loop.py), differentiable from the first action to the last reward.

`costate.envs` makes any task an environment of gymnasium.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import casadi as ca
import torch
from casadi import SX
from torch import Tensor, nn

from costate.core.fork import cached_property
from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import Program
from costate.sim import World
from costate.sim.step import step_program
from costate.train.episode import Episodes, Metrics, Trajectory, Verdict
from costate.train.names import ALGORITHMS
from costate.train.plan import Iteration
from costate.train.registry import loaded
from costate.train.reinforce.actor import Actor
from costate.train.trainable import Trainable


@dataclass(frozen=True)
class VariedEpisodes(Episodes):
    """Episodes in worlds that differ."""

    values: Tensor
    """Parameters of the world one after the other, (B, n)."""
    sizes: Mapping[str, int]
    """Parameter -> number of its values."""

    @property
    def params(self) -> Mapping[str, Tensor]:
        return dict(zip(self.sizes, self.values.split(list(self.sizes.values()), -1), strict=True))


@dataclass(frozen=True)
class Returns(Metrics):
    """The results of many episodes of a task whose only measure is its return."""

    def brief(self, unit: str) -> dict[str, str]:
        told = {name: f"{self.columns[key]:.0f}" for name, key in (("return", "return"), ("deviation", DEVIATION))}
        return told | {"lasts": f"{100 * self.success:.1f} %"}


DEVIATION = "return: standard deviation"
"""Name of that number in metrics."""


class RewardedTask(Trainable):
    """A task that is learnt by reward. Actions lie in [-1, 1].

    A class of your own gives a `world`, random states to `start` from, and three formulas of symbols: `observation_of`, `reward_of`
    and, where an episode may end before its time, `margin_of`.
    """

    unit = ""
    judged = 1000  # episodes are long
    report = "costate.report.rewards.page:RewardReport"
    stationary = True
    length: ClassVar[int] = 1000
    """Control steps of an episode at most."""
    varied: Mapping[str, tuple[float, float]] = {}
    """Parameter of the world (World(parameters=...)) -> range of the factor by which it differs from episode to episode, drawn
    evenly on a logarithmic scale."""
    staggered: ClassVar[bool] = False
    """True: a training begins with episodes of random ages, so that those which nobody ends early do not all end together."""

    @abstractmethod
    def start(self, batch: int, generator: torch.Generator) -> Tensor:
        """Return random states to start from, (batch, nx)."""

    @abstractmethod
    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        """Return what a policy sees of a state (nx,).

        action: the last one (m,), zero at the start; time: the part of the episode that has passed, from 0 to 1.
        """

    @abstractmethod
    def reward_of(self, x: SX, action: SX, after: SX, time: SX) -> SX:
        """Return the reward of an action that leads from the state x to the state after; time: that of the state after."""

    def margin_of(self, x: SX) -> SX:
        """Return how far a state is from the end of its episode: below 0 it ends. By default it never does before its time."""
        return SX(1)

    def control_of(self, action: SX) -> SX:
        """Return the control (nu,) of an action; by default scaled as `action_scale` says."""
        offset, scale = (ca.DM(x.tolist()) for x in self.action_scale)
        return offset + scale * action

    def policy(self, training: Any, generator: torch.Generator | None = None) -> nn.Module:
        if not hasattr(training, "actor"):
            return super().policy(training, generator)
        return Actor(self.size[2], self.size[1], training.actor, generator, training.sees_spread)

    @classmethod
    def ways(cls) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().ways(), *ALGORITHMS)))

    @classmethod
    def training_by(cls, algorithm: str | None = None) -> Any:
        known = (None, cls.training.algorithm, *cls.algorithms)
        if algorithm in known or algorithm not in ALGORITHMS:
            return super().training_by(algorithm)
        return loaded(ALGORITHMS[algorithm].target).like(cls.training)

    # --- kernels --------------------------------------------------------------------------------------------------

    @cached_property
    def size(self) -> tuple[int, int, int]:
        """Numbers of states, actions and observations."""
        nx, m = self.world.nx, len(self.outputs)
        return nx, m, self.observation_of(SX.sym("x", nx), SX.sym("a", m), SX.sym("t")).numel()

    @cached_property
    def varied_sizes(self) -> dict[str, int]:
        """Parameters of the world that differ from episode to episode -> number of values, in the order of the world."""
        setup = self.world.setup
        if set(setup.parameters) != set(self.varied):
            raise ValueError(
                f"task '{self.name}': the world has the parameters {list(setup.parameters)}, but `varied` is about "
                f"{list(self.varied)}: make it with World(parameters=list(self.varied))"
            )
        return {name: setup.default(name).size for name in setup.parameters}

    @cached_property
    def motion(self) -> Program:
        """Program (x, action, varied values) -> x after a step, and what its substeps begin with: a policy is trained with it."""
        return self.program_of(self.world)

    def program_of(self, world: World) -> Program:
        """Return the program (x, action, varied values) -> x after a step of a world, and what its substeps begin with.

        The values come only where there are some.
        """
        b, sizes = ProgramBuilder("task.step"), self.varied_sizes
        x, a, *values = b.inputs(*self.size[:2], *([sum(sizes.values())] if sizes else []))
        parts, begin = [], 0
        for size in sizes.values():
            parts.append(b.slice(values[0], begin, size))
            begin += size
        return b.program(*b.call(step_program(world.setup, keep=True), x, b.trace(self.control_of, a), *parts))

    def told(self, x: SX, action: SX, after: SX, time: SX) -> tuple[SX, SX, SX]:
        """Return observation, reward and margin after a step."""
        return self.observation_of(after, action, time), self.reward_of(x, action, after, time), self.margin_of(after)

    def taught(self, x: SX, action: SX, after: SX, time: SX) -> tuple[SX, SX, SX]:
        """Return the same in training, where a task may warn of a fall before it happens; by default nothing differs."""
        return self.told(x, action, after, time)

    @cached_property
    def telling(self) -> Kernel:
        """Kernel (state, action, after, time) -> observation, reward and margin of the state after."""
        nx, m, _ = self.size
        symbols = {"state": SX.sym("x", nx), "action": SX.sym("a", m), "after": SX.sym("y", nx), "time": SX.sym("t")}
        told = self.told(*symbols.values())
        names = ("observation", "reward", "margin")
        return Kernel(f"told.{self.name}", symbols, {k: ca.densify(v) for k, v in zip(names, told, strict=True)})

    # --- as a task of the trainer ---------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        return self.length

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        state = self.start(batch, generator).to(dtype)
        sizes = self.varied_sizes
        return VariedEpisodes(state, self.variation(batch, generator).to(dtype), sizes) if sizes else Episodes(state)

    def variation(self, batch: int, generator: torch.Generator) -> Tensor:
        """Return values of what is varied, (batch, n)."""
        found = [torch.zeros(batch, 0)]
        for name in self.varied_sizes:
            low, high = (math.log(bound) for bound in self.varied[name])
            factor = torch.exp(low + (high - low) * torch.rand(batch, 1, generator=generator))
            found.append(factor * torch.from_numpy(self.world.setup.default(name)).float())
        return torch.cat(found, 1)

    def fresh(self, batch: int, generator: torch.Generator) -> Tensor:
        """Return states to start from, each followed by the values that are varied, (batch, nx + n)."""
        return torch.cat([self.start(batch, generator), self.variation(batch, generator)], 1)

    def observe(self, state: Tensor, step: int, episodes: Any) -> Tensor:
        return self.see(state, step, episodes, [])

    def see(self, state: Tensor, step: int, episodes: Any, actions: Sequence[Tensor]) -> Tensor:
        last = actions[-1] if actions else state.new_zeros(*state.shape[:-1], self.size[1])
        return self.telling(state=state, action=last, after=state, time=self._time(state, step)).observation

    def _time(self, like: Tensor, step: int | Tensor) -> Tensor:
        """Return the part of the episode that has passed; step: a number, or one for each episode (B,)."""
        return torch.as_tensor(step, dtype=like.dtype).reshape(-1, 1) / self.length

    def over(self, state: Tensor, step: int, episodes: Any) -> Tensor:
        margin = self.telling(
            state=state, action=state.new_zeros(self.size[1]), after=state, time=self._time(state, step)
        ).margin
        return (margin[..., 0] < 0) | ~state.isfinite().all(-1)

    def rewards(self, trajectory: Trajectory) -> tuple[Tensor, Tensor]:
        """Return the reward of every step (T, B), zero after the end of an episode, and the steps that each lasted (B,)."""
        states = trajectory.states
        time = torch.arange(1, len(states), dtype=states.dtype)[:, None, None] / self.length
        told = self.telling(state=states[:-1], action=trajectory.actions, after=states[1:], time=time)
        reward, margin = told.reward[..., 0], told.margin[..., 0].detach()
        fell = ((margin < 0) | ~states[1:].isfinite().all(-1)).long()
        counts = fell.cumsum(0) == fell  # the step in which it falls counts
        return torch.where(counts, reward, 0.0), counts.sum(0)

    def loss(self, trajectory: Trajectory, iteration: Iteration) -> dict[str, Tensor]:
        return {"reward": -self.rewards(trajectory)[0].mean(0)}

    def reward(self, trajectory: Trajectory) -> Tensor:
        states, actions = trajectory.states, trajectory.actions
        time = self._time(states, len(actions))
        return self.telling(state=states[-2], action=actions[-1], after=states[-1], time=time).reward[..., 0]

    def judge(self, trajectory: Trajectory) -> Verdict:
        reward, steps = self.rewards(trajectory)
        columns = {"return": reward.sum(0), "length [steps]": steps}
        return Verdict(steps == len(reward), -reward.sum(0), columns=columns)

    def summarise(self, verdict: Any) -> Metrics:
        found, returns = super().summarise(verdict), verdict.columns["return"].double()
        columns = {**found.columns, DEVIATION: float(returns.std(correction=0))}
        if self.unit:
            return replace(found, columns=columns)
        return Returns(*(getattr(found, f.name) for f in fields(found) if f.name != "columns"), columns=columns)

    def rows(self, metrics: Mapping[str, Any]) -> dict[str, str]:
        rows = super().rows(metrics)
        if not self.unit:  # the error is minus the return
            rows = {name: text for name, text in rows.items() if not name.startswith("error")}
        told = {"return: mean": metrics["return"], DEVIATION: metrics[DEVIATION]}
        return {"success": rows.pop("success")} | {name: f"{value:.5g}" for name, value in told.items()} | rows

    measured: ClassVar[Mapping[str, str]] = {"return": "", "length": "steps"}  # type: ignore[assignment]

    def measures(self, trajectory: Trajectory) -> dict[str, float]:
        columns = self.judge(trajectory).columns
        return {"return": float(columns["return"].mean()), "length": float(columns["length [steps]"].double().mean())}
