"""The task for reinforcement learning: the same observations, actions, world and success; rewards are the terms of the loss.

    env = gymnasium.make("costate.tasks.insertion.environment:costate/Insertion-v0")

`Batch` runs many episodes side by side; `vector_environment.py` gives it the face stable-baselines3 expects. Needs gymnasium
(extra "rl").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch

from costate.tasks.insertion.episode import Trajectory
from costate.tasks.insertion.judge import judge
from costate.tasks.insertion.loss import BELOW_FROM, InsertionWeights, below, goal_terms, outside, too_fast
from costate.tasks.insertion.task import ACTION, ARM_V, OBSERVATION, Insertion, InsertionOptions

Tensor = torch.Tensor


@dataclass(frozen=True)
class RewardOptions:
    """How the loss becomes a reward per step."""

    weights: InsertionWeights = InsertionWeights()  # noqa: RUF009  (frozen)
    dense: bool = True
    """Position, tilt and what is far off count in every step, not only when the bottle must be seated: easier to learn from.
    False: rewards sum to minus the loss."""


def observation_space() -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION,), np.float32)


def action_space() -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-1.0, 1.0, (ACTION,), np.float32)


class Batch:
    """B episodes side by side, which start and end together."""

    def __init__(self, task: Insertion, batch: int, seed: int = 0, rewards: RewardOptions = RewardOptions()):  # noqa: B008  (frozen)
        self.task, self.batch, self.rewards = task, batch, rewards
        self.generator = torch.Generator().manual_seed(seed)
        self.length = task.options.horizon + task.options.hold
        self.funnel = 1.0
        """Factor of that term, for a slow start as in `loss`."""
        self.states: list[Tensor] = []
        self.actions: list[Tensor] = []

    def reset(self) -> Tensor:
        """Observations (B, 19) of new episodes."""
        self.states, self.actions = [self.task.sample(self.batch, self.generator)], []
        return self.task.observe(self.states[0], 0)

    @torch.no_grad()
    def step(self, action: Tensor) -> tuple[Tensor, Tensor, bool]:
        """Observations (B, 19), rewards (B,), and whether the episodes are over."""
        self.actions.append(action.clamp(-1.0, 1.0))
        self.states.append(self.task.world.step(self.states[-1], self.task.control(self.actions[-1])))
        t = len(self.actions)
        return self.task.observe(self.states[-1], t), -self._cost(self.states[-1], t), t == self.length

    def _cost(self, state: Tensor, t: int) -> Tensor:
        """What the state after step t adds to the loss, (B,). The start itself, which no action changes, adds nothing."""
        w, o = self.rewards.weights, self.task.options
        position, tilt, velocity = self.task.errors(state)
        position = position - position.new_tensor([0.0, 0.0, w.aim])
        goal = goal_terms(position, tilt, velocity, w)
        last = o.horizon - w.early
        first = 1 if self.rewards.dense else last
        cost = torch.zeros(self.batch, dtype=state.dtype)
        if t >= first:
            cost += (goal["position"] + goal["tilt"]) / (self.length - first + 1)
        if t > last:
            cost += goal["rest"] / (self.length - last)
        if self.rewards.dense:
            cost += goal["far"] / self.length
        elif t > last:
            cost += goal["far"] / (self.length - last)
        if t <= o.horizon:
            cost += self.funnel * outside(position, tilt, w) / (o.horizon + 1)
        if t >= o.horizon - BELOW_FROM:
            cost += self.funnel * below(position, tilt, w) / (o.hold + BELOW_FROM + 1)
        joints = state[..., ARM_V]
        speeds = joints.square().sum(-1)
        always = w.smoothness * speeds + w.limits * too_fast(self.task, joints)
        return cost + always / (self.length + 1) + (w.start * speeds if t == 1 else 0.0)

    def trajectory(self) -> Trajectory:
        return Trajectory(torch.stack(self.states), torch.stack(self.actions))

    def results(self) -> tuple[Tensor, Tensor]:
        """Of episodes that are over: success (B,), error [m] (B,)."""
        verdict = judge(self.task, self.trajectory())
        return verdict.success, verdict.error


class InsertionEnvironment(gymnasium.Env[np.ndarray, np.ndarray]):
    """One episode at a time. The last step's info has `is_success` and `error` [m]."""

    def __init__(
        self,
        options: InsertionOptions = InsertionOptions(),  # noqa: B008  (frozen)
        rewards: RewardOptions = RewardOptions(),  # noqa: B008  (frozen)
    ):
        self.observation_space, self.action_space = observation_space(), action_space()
        self._batch = Batch(Insertion(options), 1, rewards=rewards)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        if seed is not None:
            self._batch.generator.manual_seed(seed)
        return self._batch.reset()[0].numpy(), {}

    def step(self, action: np.ndarray):
        observation, reward, over = self._batch.step(torch.as_tensor(np.asarray(action, np.float32))[None])
        info = {}
        if over:
            success, error = self._batch.results()
            info = {"is_success": bool(success[0]), "error": float(error[0])}
        # The task ends there: what would happen later does not count.
        return observation[0].numpy(), float(reward[0]), over, False, info


gymnasium.register("costate/Insertion-v0", entry_point=f"{__name__}:InsertionEnvironment")
