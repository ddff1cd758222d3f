"""Many insertions as stable-baselines3 takes them."""

from __future__ import annotations

from costate.envs.stable_baselines import StableBaselinesEnvironment
from costate.tasks.insertion.environment import Batch
from costate.tasks.insertion.reward import RewardOptions
from costate.tasks.insertion.task import Insertion


class InsertionVecEnv(StableBaselinesEnvironment):
    """B insertions in step: all episodes are equally long."""

    def __init__(self, task: Insertion, batch: int, seed: int | None = 0, rewards: RewardOptions = RewardOptions()):  # noqa: B008  (frozen)
        self._begin(Batch(task, batch, seed, rewards))
