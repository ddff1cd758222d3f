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
    target_noise: float = 0.0
    """Error of the estimated position of the socket, once per episode, standard deviation in x and y [m]."""
    target_jitter: float = 0.0
    """Error of the same estimate, drawn anew in every step [m]."""
    payload: float = 0.0
    """Largest change of the bottle's mass, as a fraction."""
    friction: float = 0.0
    """Largest change of the coefficient of friction, as a fraction."""
    latency: int = 0
    """Steps between an observation and the action it leads to."""
    random_latency: bool = False
    """True: half of the episodes are without latency."""
    belt_change: float = 0.0
    """Largest change of the socket's velocity in the middle of the motion, in any direction [m/s]."""


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
    prompt: Tensor | None = None
    """1 for episodes without latency, else 0, (B, 1); None: all have it."""
    belt_change: Tensor | None = None
    """Change of the socket's velocity, half-way [m/s], (B, 2)."""

    @property
    def params(self) -> Mapping[str, Tensor]:
        given = {"friction": self.friction, "mass:ur5/bottle": self.payload}
        return {k: v for k, v in given.items() if v is not None}


def draw(
    task: Insertion,
    batch: int,
    generator: torch.Generator,
    disturbances: Disturbances = Disturbances(),  # noqa: B008  (frozen)
    dtype: torch.dtype = torch.float32,
    spread: float = 1.0,
) -> Episodes:
    """Draw random episodes; start poses, targets and belt speeds come from ranges `spread` times those of the task."""
    d = disturbances
    state = task.sample(batch, generator, dtype, spread)

    def uniform(*shape: int) -> Tensor:
        return 2 * torch.rand(*shape, generator=generator, dtype=dtype) - 1

    change = None
    if d.belt_change:
        size, angle = d.belt_change * uniform(batch, 1).abs(), torch.pi * uniform(batch, 1)
        change = size * torch.cat([angle.cos(), angle.sin()], -1)
    return Episodes(
        state,
        _noise(task, batch, generator, d, dtype),
        BOTTLE_MASS * (1 + d.payload * uniform(batch, 1)) if d.payload else None,
        task.options.friction * (1 + d.friction * uniform(batch, 1)) if d.friction else None,
        d.latency,
        (uniform(batch, 1) > 0).to(dtype) if d.latency and d.random_latency else None,
        change,
    )


def _noise(task: Insertion, batch: int, generator: torch.Generator, d: Disturbances, dtype) -> Tensor | None:
    """Draw the noise of observations, (T, B, 19)."""
    if not (d.joint_noise or d.velocity_noise or d.target_noise or d.target_jitter):
        return None
    steps = task.options.horizon + task.options.hold

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    felt = torch.zeros(steps, batch, 18, dtype=dtype)
    felt[..., :6] = d.joint_noise * normal(steps, batch, 6)
    felt[..., 6:8] = d.target_noise * normal(batch, 2) + d.target_jitter * normal(steps, batch, 2)
    felt[..., ARM_V] = d.velocity_noise * normal(steps, batch, 6)
    return felt @ task.features[0].to(dtype)


def run(task: Insertion, world: Stepper, controller: Controller, episodes: Episodes) -> Trajectory:
    """Run the controller in these episodes, in one of the task's worlds. Differentiable."""
    return rollout(task, controller, episodes, world)
