"""Motions of least time, and how near to them the policies of an insertion run come."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from costate.optimise.direct import Direct, DirectOptions
from costate.optimise.solution import Solution
from costate.tasks.insertion import InsertionOptions
from costate.tasks.insertion.bound import InsertionBound
from costate.tasks.task import Timed

Tensor = torch.Tensor


def least_times(timed: Timed, options: DirectOptions) -> list[Solution]:
    """Solve problems of least time, one after the other; they are written down once."""
    wanted = replace(
        options, minimum_time=True, phases=timed.phases, duration=timed.duration, duration_bounds=timed.durations,
        bounds=timed.controls, state_bounds=timed.state_bounds,
    )  # fmt: skip
    sizes = {name: value.shape[-1] for name, value in timed.inputs.items()}
    program = Direct(timed.world, None, sum(timed.phases), wanted, timed.limits, sizes)
    idle = torch.zeros(sum(timed.phases), timed.world.nu, dtype=torch.float64)
    return [
        program.solve(start, idle, states0=timed.states0[:, k], inputs={n: v[k] for n, v in timed.inputs.items()})
        for k, start in enumerate(timed.state0)
    ]


@dataclass(frozen=True)
class Bound:
    """Least times of insertions, per episode (B,)."""

    seconds: Tensor
    """Of a motion that touches nothing, by any torques within the effort limits [s]. A local minimum of IPOPT."""
    arrival: Tensor
    """By velocity limits alone: also for motions that let walls and floor stop the bottle [s]."""
    solved: Tensor
    """Whether both were found, bool."""

    def possible(self, horizon: float) -> float:
        """Share of the episodes that can be done in this time [s] at all, without touching."""
        return float((self.seconds <= horizon).double().mean())


def insertion_bound(
    options: InsertionOptions = InsertionOptions(),  # noqa: B008  (frozen)
    episodes: int = 8,
    seed: int = 0,
    direct: DirectOptions = DirectOptions(method="inverse"),  # noqa: B008
) -> Bound:
    """Bounds for the first of the held-out episodes."""
    task, numbers = InsertionBound(options, seed=seed), range(episodes)
    moved = task.least_times(numbers)
    arrived = task.least_times(numbers, rest=False)
    motions, arrivals = least_times(moved, direct), least_times(arrived, replace(direct, method="kinematic"))
    return Bound(
        torch.tensor([s.extra["duration"] - moved.after for s in motions]),
        torch.tensor([s.extra["duration"] - arrived.after for s in arrivals]),
        torch.tensor([a.converged and b.converged for a, b in zip(motions, arrivals, strict=True)]),
    )
