"""Many insertions as stable-baselines3 takes them."""

from __future__ import annotations

from costate.tasks.insertion.environment import Batch, RewardOptions
from costate.tasks.insertion.task import Insertion
from costate.train.environments.vector import VectorEnvironment


class InsertionVecEnv(VectorEnvironment):
    """B insertions in step: all episodes are equally long."""

    def __init__(self, task: Insertion, batch: int, seed: int = 0, rewards: RewardOptions = RewardOptions()):  # noqa: B008  (frozen)
        self._begin(Batch(task, batch, seed, rewards))
