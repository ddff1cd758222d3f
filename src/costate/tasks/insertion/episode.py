"""Episodes: everything that is random about them, drawn beforehand, and what happens in them under a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch

from costate.sim.setup import Setup
from costate.tasks.insertion.scene import BOTTLE_MASS
from costate.tasks.insertion.task import ARM_V, SOCKET_V, Insertion

Tensor = torch.Tensor
Controller = Callable[[Tensor], Tensor]
"""Observation (..., 19) -> action (..., 6) in [-1, 1]."""


class Stepper(Protocol):
    """What episodes run in: a `World` of the task, or the same scene in another engine."""

    setup: Setup

    def step(self, state: Tensor, control: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor: ...


@dataclass(frozen=True)
class Disturbances:
    """What a controller is trained or tested against. Standard deviations, or half widths of even distributions."""

    joint_noise: float = 0.0
    """Of measured joint positions, in every step, standard deviation [rad]."""
    velocity_noise: float = 0.0
    """Of measured joint velocities, in every step, standard deviation [rad/s]."""
    target_noise: float = 0.0
    """Of the estimated position of the socket, once per episode, standard deviation in x and y [m]."""
    target_jitter: float = 0.0
    """The same, anew in every step [m]."""
    payload: float = 0.0
    """The bottle's mass differs by up to this fraction."""
    friction: float = 0.0
    """The coefficient of friction differs by up to this fraction."""
    latency: int = 0
    """Steps between an observation and the action it leads to."""
    random_latency: bool = False
    """Half of the episodes without latency."""
    belt_change: float = 0.0
    """In the middle of the motion the socket's velocity changes by up to this much, in any direction [m/s]."""


@dataclass(frozen=True)
class Episodes:
    """B episodes."""

    state: Tensor
    """At the start, (B, 18)."""
    noise: Tensor | None = None
    """Added to observations, (T, B, 19)."""
    payload: Tensor | None = None
    """Mass of the bottle [kg], (B, 1)."""
    friction: Tensor | None = None
    """Coefficient, (B, 1)."""
    latency: int = 0
    prompt: Tensor | None = None
    """1 for episodes without latency, else 0, (B, 1); None: all have it."""
    belt_change: Tensor | None = None
    """Of the socket's velocity, half-way [m/s], (B, 2)."""


@dataclass(frozen=True)
class Trajectory:
    """What happened."""

    states: Tensor
    """(T + 1, B, 18)."""
    actions: Tensor
    """As the controller gave them, in [-1, 1], (T, B, 6)."""
    penetration: Tensor | None = None
    """Deepest overlap with the socket, by the engine they are from [m], (B,); None: by the task's world."""


def draw(
    task: Insertion,
    batch: int,
    generator: torch.Generator,
    disturbances: Disturbances = Disturbances(),  # noqa: B008  (frozen)
    dtype: torch.dtype = torch.float32,
    spread: float = 1.0,
) -> Episodes:
    """Random episodes, with start poses, targets and belt speeds from ranges `spread` times those of the task."""
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
    """Of observations, (T, B, 19)."""
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
    """The controller in these episodes, in one of the task's worlds. Differentiable."""
    o, e = task.options, episodes
    state, dtype = e.state, e.state.dtype
    matrix, offset = (x.to(dtype) for x in task.features)
    steps = o.horizon + o.hold
    clock = offset.repeat(steps, 1)
    clock[:, -1] = (torch.arange(steps) / o.horizon).clamp(max=1.0)
    still = torch.zeros(state.shape[0], 6, dtype=dtype)
    params = _params(world, e)
    states, actions = [state], []
    for t in range(steps):
        if e.belt_change is not None and t == o.horizon // 2:
            state = state.clone()
            state[:, SOCKET_V] = state[:, SOCKET_V] + e.belt_change
        observation = torch.addmm(clock[t], state, matrix)
        if e.noise is not None:
            observation = observation + e.noise[t]
        actions.append(controller(observation))
        action = actions[-1]
        if e.latency:
            late = actions[t - e.latency] if t >= e.latency else still
            action = late if e.prompt is None else torch.lerp(late, action, e.prompt)
        state = world.step(state, task.control(action), params)
        states.append(state)
    return Trajectory(torch.stack(states), torch.stack(actions))


def _params(world: Stepper, e: Episodes) -> dict[str, Tensor]:
    """What of payload and friction is given and this world knows."""
    given = {"friction": e.friction, "mass:ur5/bottle": e.payload}
    return {k: v for k, v in given.items() if v is not None and k in world.setup.parameters}
