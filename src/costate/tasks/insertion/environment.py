"""The task for reinforcement learning: the same observations, actions, world and success; rewards are the terms of the loss.

    env = gymnasium.make("costate.envs:costate/Insertion-v0")

`Batch` runs many episodes side by side; `vector_environment.py` gives it the face stable-baselines3 expects. Needs gymnasium
(extra "rl").
"""

from __future__ import annotations

from torch import Tensor

from costate.envs import batch as batches
from costate.tasks.insertion.reward import RewardOptions, step_cost
from costate.tasks.insertion.task import Insertion
from costate.train.episode import Trajectory


class Batch(batches.Batch):
    """B insertions side by side, with rewards as they are chosen."""

    def __init__(
        self,
        task: Insertion,
        batch: int,
        seed: int | None = 0,
        rewards: RewardOptions = RewardOptions(),  # noqa: B008  (frozen)
    ):
        super().__init__(task, batch, seed)
        self.task: Insertion = task
        self.weighed = rewards
        self.funnel = 1.0
        """Factor of that term, for a slow start as in `loss`."""

    def rewards(self, trajectory: Trajectory) -> Tensor:
        """Return the rewards of the last step, (B,)."""
        return -step_cost(self.task, trajectory.states[-1], len(trajectory.actions), self.weighed, self.funnel)
