"""Robustness: how a trained policy fares when the world is not the one it was trained in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from costate.core.files import write_json
from costate.tasks.insertion import (
    Disturbances,
    Episodes,
    Insertion,
    Metrics,
    Policy,
    draw,
    judge,
    run,
    summarise,
)
from costate.tasks.insertion.scene import BOTTLE_MASS
from costate.train.plan import generator
from costate.train.run import Run


@dataclass(frozen=True)
class Case:
    """One way in which the world differs."""

    name: str
    disturbances: Disturbances = Disturbances()  # noqa: RUF009  (frozen)
    payload: float = 1.0
    """Mass of the bottle by its usual one. The servos are not told: they carry the usual one."""
    friction: float = 1.0
    """Coefficient by its usual one."""

    def episodes(self, task: Insertion, batch: int, seed: int) -> Episodes:
        """Held-out ones: the same starts and targets in every case."""
        e = draw(task, batch, generator("held out", seed), self.disturbances, torch.float64)
        payload, friction = BOTTLE_MASS * self.payload, task.options.friction * self.friction
        return replace(
            e, payload=torch.full_like(e.state[:, :1], payload), friction=torch.full_like(e.state[:, :1], friction)
        )


CASES = (
    Case("nothing changed"),
    Case("joint sensors: 0.1 mrad, 1 mrad/s", Disturbances(joint_noise=1e-4, velocity_noise=1e-3)),
    Case("joint sensors: 0.5 mrad, 10 mrad/s", Disturbances(joint_noise=5e-4, velocity_noise=1e-2)),
    Case("target sensor: 0.1 mm in every step", Disturbances(target_jitter=1e-4)),
    Case("target sensor: 0.5 mm in every step", Disturbances(target_jitter=5e-4)),
    Case("target sensor: off by 0.2 mm", Disturbances(target_noise=2e-4)),
    Case("payload -20 %", payload=0.8),
    Case("payload +20 %", payload=1.2),
    Case("friction -50 %", friction=0.5),
    Case("friction +50 %", friction=1.5),
    Case("latency of 1 step", Disturbances(latency=1)),
    Case("latency of 2 steps", Disturbances(latency=2)),
    Case("target speeds up half-way, by up to 0.05 m/s", Disturbances(belt_change=0.05)),
    Case("target speeds up half-way, by up to 0.1 m/s", Disturbances(belt_change=0.1)),
)
"""Noise is given by its standard deviation; a target speeds up in any direction of the plane."""


def robustness_of(
    task: Insertion,
    policy: Policy,
    episodes: int = 1000,
    seed: int = 0,
    watch: Callable[[str, Metrics], None] = lambda name, metrics: None,
) -> dict[str, Metrics]:
    """Name of the case -> results, in the world with contact. watch: is given each as it is found."""
    policy, found = copy.deepcopy(policy).double(), {}
    for case in CASES:
        with torch.no_grad():
            verdict = judge(task, run(task, task.world, policy, case.episodes(task, episodes, seed)))
        found[case.name] = summarise(task, verdict)
        watch(case.name, found[case.name])
    return found


def robustness(
    folder: Run,
    episodes: int = 1000,
    seed: int = 0,
    watch: Callable[[str, Metrics], None] = lambda name, metrics: None,
) -> dict[str, Metrics]:
    """Of a run's policy; write robustness.json: a row per case, with the fields of `Metrics`."""
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be at least 1")
    found = robustness_of(folder.task, folder.policy, episodes, seed, watch)
    write_json(folder.path / "robustness.json", [{"case": name} | m.as_dict() for name, m in found.items()])
    return found
