"""Robustness: how a policy fares when the world is not the one it was trained in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from costate.tasks.insertion.episode import Controller, Disturbances, Episodes, draw, run
from costate.tasks.insertion.judge import Metrics, judge, summarise
from costate.tasks.insertion.scene import BOTTLE_MASS
from costate.tasks.insertion.task import Insertion


@dataclass(frozen=True)
class Case:
    """One way in which the world differs."""

    name: str
    disturbances: Disturbances = Disturbances()  # noqa: RUF009  (frozen)
    payload: float | None = None
    """Mass of the bottle by its usual one; the servos are not told."""
    friction: float | None = None
    """Coefficient by its usual one."""

    def episodes(self, task: Insertion, batch: int, seed: int) -> Episodes:
        """The same starts and targets in every case."""
        e = draw(task, batch, torch.Generator().manual_seed(seed), self.disturbances)

        def constant(value: float) -> torch.Tensor:
            return torch.full((batch, 1), value, dtype=e.state.dtype)

        if self.payload is not None:
            e = replace(e, payload=constant(BOTTLE_MASS * self.payload))
        if self.friction is not None:
            e = replace(e, friction=constant(task.options.friction * self.friction))
        return e


CASES = (
    Case("nothing changed"),
    Case("joint sensors: 0.1 mrad, 1 mrad/s", Disturbances(joint_noise=1e-4, velocity_noise=1e-3)),
    Case("joint sensors: 0.5 mrad, 10 mrad/s", Disturbances(joint_noise=5e-4, velocity_noise=1e-2)),
    Case("target sensor: 0.1 mm, anew in every step", Disturbances(target_jitter=1e-4)),
    Case("target sensor: 0.5 mm, anew in every step", Disturbances(target_jitter=5e-4)),
    Case("target sensor: off by 0.2 mm", Disturbances(target_noise=2e-4)),
    Case("payload -20 %", payload=0.8),
    Case("payload +20 %", payload=1.2),
    Case("friction -50 %", friction=0.5),
    Case("friction +50 %", friction=1.5),
    Case("latency of 1 step", Disturbances(latency=1)),
    Case("latency of 2 steps", Disturbances(latency=2)),
    Case("target changes its speed half-way, by up to 0.05 m/s", Disturbances(belt_change=0.05)),
    Case("target changes its speed half-way, by up to 0.1 m/s", Disturbances(belt_change=0.1)),
)
"""Noise is given by its standard deviation."""


def robustness(
    task: Insertion,
    controller: Controller,
    episodes: int = 2000,
    seed: int = 7_000_001,
    cases: tuple[Case, ...] = CASES,
    progress: Callable[[Case, Metrics], None] = lambda case, metrics: None,
) -> dict[str, Metrics]:
    """Name of the case -> results, in the world with contact."""
    found = {}
    for case in cases:
        with torch.no_grad():
            trajectory = run(task, task.world, controller, case.episodes(task, episodes, seed))
            found[case.name] = summarise(task, judge(task, trajectory))
        progress(case, found[case.name])
    return found
