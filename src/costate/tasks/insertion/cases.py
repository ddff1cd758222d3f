"""Cases of the robustness table: ways in which the insertion's world may differ from the one in training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from costate.tasks.insertion.episode import Disturbances, Episodes, draw
from costate.tasks.insertion.scene import BOTTLE_MASS

if TYPE_CHECKING:
    from costate.tasks.insertion.task import Insertion


@dataclass(frozen=True)
class Case:
    """One way in which the world differs."""

    name: str
    """Name of the row."""
    disturbances: Disturbances = Disturbances()  # noqa: RUF009  (frozen)
    """Disturbances of every episode."""
    payload: float = 1.0
    """Mass of the bottle by its usual one. The servos are not told: they carry the usual one."""
    friction: float = 1.0
    """Coefficient of friction by its usual one."""

    def episodes(self, task: Insertion, batch: int, generator: torch.Generator) -> Episodes:
        """Draw episodes: the same starts and targets in every case."""
        e = draw(task, batch, generator, self.disturbances, torch.float64)
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
    Case("target sensor: off by 0.2 mm", Disturbances(target_offset=2e-4)),
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
