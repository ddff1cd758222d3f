"""A small task that ends early and does not know the time: two links that stay near hanging down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch

import costate as cs
from costate.train import Episodes, Trainable, Verdict


@dataclass(frozen=True)
class BalanceOptions:
    """Options of the task."""

    steps: int = 20
    """Steps of an episode."""
    limit: float = 0.6
    """Angle that ends an episode [rad]."""


class Balance(Trainable):
    name: ClassVar[str] = "balance"
    summary: ClassVar[str] = "two links stay near an angle"
    options = BalanceOptions()
    stationary: ClassVar[bool] = True

    @cached_property
    def world(self):
        return cs.World([cs.load_robot("two_link")], actuators=cs.Torque(limit=20.0), contact=None, dt=0.02)

    def draw(self, batch, generator, dtype=torch.float32):
        return Episodes(0.5 * torch.randn(batch, 4, generator=generator, dtype=torch.float64).to(dtype))

    def observe(self, state, step, episodes):
        return torch.cat([state.sin(), state.cos()], -1)

    def reward(self, trajectory):
        return 1 - trajectory.states[-1].square().sum(-1) - 0.1 * trajectory.actions[-1].square().sum(-1)

    def over(self, state, step, episodes):
        return state[:, 0].abs() > self.options.limit

    def loss(self, trajectory, iteration):
        return {"angle": trajectory.states.square().sum(-1).mean(0)}

    def judge(self, trajectory):
        error = trajectory.states[-1, :, 0].abs()
        return Verdict(error < 0.1, error)
