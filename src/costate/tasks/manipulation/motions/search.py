"""Training by search: the cross-entropy method in the full world, for motions with a few numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from costate.train.episode import rollout
from costate.train.plan import Iteration, Schedule
from costate.train.streams import generator
from costate.train.trainer import Iterated, Training

if TYPE_CHECKING:
    from costate.train.run import Checkpoint


@dataclass(frozen=True)
class SearchTraining(Schedule):
    """Options of a training by search."""

    algorithm: ClassVar[str] = "search"
    trainer: ClassVar[Any] = "costate.tasks.manipulation.motions.search:SearchTrainer"

    iterations: int = 6
    """Rounds."""
    batch: int = 16
    """Episodes that each candidate is tried in, new ones every round."""
    candidates: int = 16
    """Candidates of a round."""
    kept: int = 5
    """Candidates whose mean and spread the next round starts from."""
    steps: int = 0
    """Control steps of the episodes that it is searched with; 0: as many as the task has."""
    inertia: float = 0.3
    """Part of the old mean and spread that stays."""
    interval: int = 1
    """Rounds from one row of metrics, and one checkpoint, to the next."""
    watch_interval: int = 0
    """Rounds from one look at the success rate to the next; 0: never."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least("candidates", "kept")
        if self.kept > self.candidates:
            raise ValueError(f"kept is {self.kept} of {self.candidates} candidates; it must not be more")


class SearchTrainer(Training):
    """Candidates around a mean, tried in the same episodes; the best of them give the next mean."""

    policy: Any

    def set_up(self, point: Checkpoint) -> None:
        start = torch.ones_like(self.policy.numbers)
        self.spread = point.more.get("spread", start)
        own = self.task.options
        self.tried = type(self.task)(replace(own, steps=self.options.steps)) if self.options.steps else self.task

    def kept(self) -> dict[str, Any]:
        return {"moments": {}, "more": {"spread": self.spread}}

    def iterate(self, plan: Iteration) -> Iterated:
        o, task = self.options, self.tried
        random = generator("episodes", o.seed, plan.number)
        drawn, mean = task.draw(plan.batch, random, torch.float64), self.policy.numbers.data
        noise = torch.randn(o.candidates, len(mean), generator=random, dtype=torch.float64)
        noise[0] = 0.0  # the mean itself
        candidates = mean + self.spread * noise
        policy = task.policy(o)
        policy.numbers.data = candidates.repeat_interleave(plan.batch, 0)
        with torch.no_grad():
            trajectory = rollout(task, policy.begin(), drawn.repeated(o.candidates))
        terms = {k: v.nan_to_num(1e3).unflatten(0, (o.candidates, -1)) for k, v in task.loss(trajectory, plan).items()}
        loss = torch.stack(list(terms.values())).sum(0).mean(1)
        best = candidates[torch.argsort(loss)[: o.kept]]
        self.policy.numbers.data = o.inertia * mean + (1 - o.inertia) * best.mean(0)
        self.spread = o.inertia * self.spread + (1 - o.inertia) * best.std(0, unbiased=False)
        self.control_steps += task.steps * len(trajectory.states[0])
        told = {"loss": float(loss.sort().values[: o.kept].mean())} | {k: float(v.mean()) for k, v in terms.items()}
        return Iterated(told, 0.0, lambda: task.measures(trajectory))
