"""A small task in a file of its own, as a user has one: an arm with two links holds its elbow at a random angle."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

import costate as cs
from costate.core.fork import cached_property
from costate.train import Episodes, Trainable, TrainOptions, Trajectory, Verdict


@dataclass(frozen=True)
class HoldOptions:
    """Options of the task."""

    steps: int = 12
    """Control steps of an episode."""
    reach: float = 1.0
    """Largest angle that is asked for [rad]."""


@dataclass(frozen=True)
class Goals(Episodes):
    """Episodes with an angle to hold."""

    angle: Tensor
    """Angles of the elbow [rad], (B, 1)."""


@dataclass(frozen=True)
class Held(Verdict):
    """A verdict with a field of its own."""

    speed: Tensor
    """Speed in the end [rad/s], (B,)."""


class Hold(Trainable):
    """The elbow is to be still at an angle."""

    name = "hold"
    summary = "an arm holds its elbow at an angle"
    unit = "rad"
    options = HoldOptions()
    training = TrainOptions(
        iterations=12, batch=20, shard=6, hidden=8, interval=4, watch_interval=0, learning_rate=1e-2, warm_up=0
    )

    @cached_property
    def world(self) -> cs.World:
        robot = cs.load_robot("two_link")
        return cs.World([robot], actuators=cs.Torque(limit=20.0), contact=None, dt=0.02, check=False)

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Goals:
        state = 0.2 * torch.randn(batch, 4, generator=generator, dtype=torch.float64)
        angle = self.options.reach * (2 * torch.rand(batch, 1, generator=generator, dtype=torch.float64) - 1)
        return Goals(state.to(dtype), angle.to(dtype))

    def observe(self, state: Tensor, step: int, episodes: Goals) -> Tensor:
        return torch.cat([state, episodes.angle], -1)

    def loss(self, trajectory: Trajectory, iteration: object) -> dict[str, Tensor]:
        off = trajectory.states[5:, :, 1] - trajectory.episodes.angle[:, 0]
        return {"angle": off.square().mean(0), "rest": 0.01 * trajectory.states[5:, :, 2:].square().sum(-1).mean(0)}

    def judge(self, trajectory: Trajectory) -> Held:
        error = (trajectory.states[-1, :, 1] - trajectory.episodes.angle[:, 0]).abs()
        return Held(error < 0.5, error, trajectory.states[-1, :, 3].abs())

    def cases(self):
        return {"as usual": lambda n, g: self.draw(n, g, torch.float64)}
