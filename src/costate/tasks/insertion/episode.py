"""Episodes of the insertion: everything that is random about them, drawn beforehand, and how they go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.tasks.insertion.scene import ARM_V, BOTTLE_MASS
from costate.train import episode
from costate.train.episode import Controller, Stepper, Trajectory, rollout

if TYPE_CHECKING:
    from costate.tasks.insertion.task import Insertion


@dataclass(frozen=True)
class Disturbances:
    """Disturbances that a controller is trained or tested against: standard deviations, or half widths of even distributions."""

    joint_noise: float = 0.0
    """Noise of measured joint positions, in every step, standard deviation [rad]."""
    velocity_noise: float = 0.0
    """Noise of measured joint velocities, in every step, standard deviation [rad/s]."""
    target_offset: float = 0.0
    """Error of the estimated position of the socket, once per episode: a length, in any direction of the plane [m]."""
    target_jitter: float = 0.0
    """Error of the same estimate, drawn anew in every reading, standard deviation in x and y [m]."""
    payload: float = 0.0
    """Largest change of the bottle's mass, as a fraction."""
    friction: float = 0.0
    """Largest change of the coefficient of friction, as a fraction."""
    latency: int = 0
    """Steps between an observation and the action it leads to."""
    random_latency: bool = False
    """True: every episode has a latency of its own, from 0 to that many steps."""
    belt_change: float = 0.0
    """Largest change of the socket's velocity in the middle of the motion, in any direction [m/s]."""
    encoder: float = 0.0
    """Step by which measured joint positions are rounded [rad]."""
    camera_rate: float = 0.0
    """Readings of the socket's position in a second; between them the last one moves on with the belt; 0: one in every step."""
    random_offset: bool = False
    """True: every episode has an offset of its own, from 0 to that of the target."""

    @property
    def noisy(self) -> bool:
        """True if anything that is measured is not exact."""
        return bool(self.joint_noise or self.velocity_noise or self.target_offset or self.target_jitter or self.encoder)


REALISTIC = Disturbances(
    joint_noise=5e-4,
    velocity_noise=1e-2,
    encoder=5e-5,
    target_offset=2e-4,
    target_jitter=3e-4,
    payload=0.2,
    friction=0.5,
    latency=2,
    random_latency=True,
    belt_change=0.1,
)
"""Disturbances of a real cell, all at once."""


@dataclass(frozen=True)
class Episodes(episode.Episodes):
    """B episodes of the insertion."""

    noise: Tensor | None = field(default=None, metadata={"batch_axis": 1})
    """Noise that is added to observations, (T, B, 19)."""
    payload: Tensor | None = None
    """Mass of the bottle [kg], (B, 1)."""
    friction: Tensor | None = None
    """Coefficient of friction, (B, 1)."""
    latency: int = 0
    """Steps between an observation and the action it leads to."""
    delays: Tensor | None = None
    """1 at the latency that an episode has, else 0, (B, latency + 1); None: all have the same."""
    belt_change: Tensor | None = None
    """Change of the socket's velocity, half-way [m/s], (B, 2)."""
    encoder: float = 0.0
    """Step by which measured joint positions are rounded [rad]."""
    begun: Tensor | None = None
    """Time index, in control steps, that an episode begins with, (B,); None: 0."""

    @property
    def params(self) -> Mapping[str, Tensor]:
        given = {"friction": self.friction, "mass:ur5/bottle": self.payload}
        return {k: v for k, v in given.items() if v is not None}


def draw(
    task: Insertion,
    batch: int,
    generator: torch.Generator,
    disturbances: Disturbances | None = None,
    dtype: torch.dtype = torch.float32,
    spread: float = 1.0,
) -> Episodes:
    """Draw random episodes; start poses, targets and belt speeds come from ranges `spread` times those of the task.

    disturbances: None: those of the task.
    """
    d = task.options.disturbances if disturbances is None else disturbances
    state = task.sample(batch, generator, dtype, spread)

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, generator=generator, dtype=dtype) - 1

    def direction() -> Tensor:
        angle = torch.pi * uniform(batch, 1)
        return torch.cat([angle.cos(), angle.sin()], -1)

    change = delays = None
    if d.belt_change:
        change = d.belt_change * uniform(batch, 1).abs() * direction()
    if d.latency and d.random_latency:
        drawn = torch.randint(d.latency + 1, (batch,), generator=generator)
        delays = torch.nn.functional.one_hot(drawn, d.latency + 1).to(dtype)
    way = direction() if d.target_offset else None
    if way is not None and d.random_offset:
        way = way * uniform(batch, 1).abs()
    return Episodes(
        state,
        _noise(task, batch, generator, d, way, dtype),
        BOTTLE_MASS * (1 + d.payload * uniform(batch, 1)) if d.payload else None,
        task.options.friction * (1 + d.friction * uniform(batch, 1)) if d.friction else None,
        d.latency,
        delays,
        change,
        d.encoder,
        task.spared(state),
    )


def _noise(
    task: Insertion, batch: int, generator: torch.Generator, d: Disturbances, way: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """Draw the noise of observations, (T, B, 19). way: the target's offset as a part of the largest one, (B, 2)."""
    if not d.noisy:
        return None
    steps = task.options.horizon + task.options.hold

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    felt = torch.zeros(steps, batch, 18, dtype=dtype)
    felt[..., :6] = d.joint_noise * normal(steps, batch, 6)
    jitter = d.target_jitter * normal(steps, batch, 2)
    if d.camera_rate:  # a reading lasts until the next one; each episode begins somewhere between two
        begun = torch.rand(batch, generator=generator, dtype=dtype)
        number = (torch.arange(steps)[:, None] * task.options.dt * d.camera_rate + begun).long()
        jitter = jitter.gather(0, number[..., None].expand_as(jitter).clamp(max=steps - 1))
    felt[..., 6:8] = jitter if way is None else jitter + d.target_offset * way
    felt[..., ARM_V] = d.velocity_noise * normal(steps, batch, 6)
    return felt @ task.features[0].to(dtype)


def aligned(trajectory: Trajectory) -> Tensor:
    """Return the states (T + 1, B, 18) of a trajectory by their time index: motions that begin late stand still before that."""
    states, episodes = trajectory.states, trajectory.episodes
    if episodes is None or episodes.begun is None:
        return states
    number = (torch.arange(len(states))[:, None] - episodes.begun).clamp(min=0)
    return states.gather(0, number[..., None].expand_as(states))


def run(task: Insertion, world: Stepper, controller: Controller, episodes: Episodes) -> Trajectory:
    """Run the controller in these episodes, in one of the task's worlds. Differentiable."""
    return rollout(task, controller, episodes, world)
