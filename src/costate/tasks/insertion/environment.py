"""The task for reinforcement learning: the same observations, actions, world and success; rewards are the terms of the loss.

    env = gymnasium.make("costate.tasks.insertion.environment:costate/Insertion-v0")

`Batch` runs many episodes side by side; `vector_environment.py` gives it the face stable-baselines3 expects. Needs gymnasium
(extra "rl").
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from costate.core.extras import needs
from costate.tasks.insertion.cell import InsertionOptions
from costate.tasks.insertion.loss import BELOW_FROM, InsertionWeights, below, goal_terms, outside, too_fast
from costate.tasks.insertion.scene import ARM_V
from costate.tasks.insertion.task import Insertion
from costate.train.environments import batch as batches
from costate.train.environments.environment import Environment

try:
    import gymnasium
except ImportError as error:
    raise ImportError(needs("an environment for reinforcement learning", "gymnasium", "rl")) from error


@dataclass(frozen=True)
class RewardOptions:
    """Options of how the loss becomes a reward per step."""

    weights: InsertionWeights = InsertionWeights()  # noqa: RUF009  (frozen)
    """Weights of the terms."""
    dense: bool = True
    """True: position, tilt and what is far off count in every step, not only when the bottle must be seated, which is easier to
    learn from. False: rewards sum to minus the loss."""


class Batch(batches.Batch):
    """B insertions side by side, with a reward for every step."""

    def __init__(self, task: Insertion, batch: int, seed: int = 0, rewards: RewardOptions = RewardOptions()):  # noqa: B008  (frozen)
        super().__init__(task, batch, seed)
        self.task: Insertion = task
        self.weighed = rewards
        self.funnel = 1.0
        """Factor of that term, for a slow start as in `loss`."""

    def rewards(self) -> Tensor:
        """Return the rewards of the last step, (B,)."""
        return -self._cost(self.states[-1], len(self.actions))

    def _cost(self, state: Tensor, t: int) -> Tensor:
        """Return what the state after step t adds to the loss, (B,). The start itself, which no action changes, adds nothing."""
        w, o = self.weighed.weights, self.task.options
        position, tilt, velocity = self.task.errors(state)
        position = position - position.new_tensor([0.0, 0.0, w.aim])
        goal = goal_terms(position, tilt, velocity, w)
        last = o.horizon - w.early
        first = 1 if self.weighed.dense else last
        cost = torch.zeros(self.batch, dtype=state.dtype)
        if t >= first:
            cost += (goal["position"] + goal["tilt"]) / (self.length - first + 1)
        if t > last:
            cost += goal["rest"] / (self.length - last)
        if self.weighed.dense:
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


class InsertionEnvironment(Environment):
    """One insertion at a time. The last step's info has `is_success` and `error` [m]."""

    def __init__(
        self,
        options: InsertionOptions = InsertionOptions(),  # noqa: B008  (frozen)
        rewards: RewardOptions = RewardOptions(),  # noqa: B008  (frozen)
    ):
        task = Insertion(options)
        super().__init__(task, Batch(task, 1, rewards=rewards))


gymnasium.register("costate/Insertion-v0", entry_point=f"{__name__}:InsertionEnvironment")
