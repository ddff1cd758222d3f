"""The one loss that is trained on: smooth, dimensionless, and never flat.

Goal terms count at the end of the motion, while the bottle must stay seated, and a little before. Each is a multiple r of what
success allows, and enters as log(1 + c r^2): a decimetre and a tenth of a millimetre pull alike, so one learning rate serves both.
The bottle must stay inside a funnel around the socket's axis, as narrow as the bore less a margin from just above the mouth down,
and end a hair above the floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.tasks.insertion.episode import aligned
from costate.tasks.insertion.scene import ARM_V, BOTTLE_RADIUS, CLEARANCE, DEPTH
from costate.train.episode import Trajectory

if TYPE_CHECKING:
    from costate.tasks.insertion.task import Insertion


POSITION_UNIT, TILT_UNIT, SPEED_UNIT = 5e-4, 0.005, 0.01
"""Units of the terms: the error success allows [m], a third of the tilt [rad], the speed [m/s]."""
JERK_UNIT = 4000.0
"""Unit of jerks where they have no limit [rad/s^3]."""
BELOW_FROM = 6
"""Steps before the end from which the foot must be above the floor."""


@dataclass(frozen=True)
class InsertionWeights:
    """Weights of the terms of the loss."""

    position: float = 1.0
    """Weight of the distance of the bottle's foot from its seat."""
    tilt: float = 0.5
    """Weight of the angle of the bottle against the socket's axis."""
    rest: float = 1.0
    """Weight of the speed against the socket."""
    far: float = 0.02
    """Weight of the same three without the logarithm, which pulls in what is far off."""
    funnel: float = 40.0
    """Weight of leaving the funnel around the socket's axis (non-penetration)."""
    floor: float = 0.4
    """Weight of the bottle's foot below the seat (non-penetration)."""
    smoothness: float = 3e-3
    """Weight of squared joint velocities."""
    limits: float = 1.0
    """Weight of joint velocities above 97 % of their limits."""
    dynamics: float = 1.0
    """Weight of joint accelerations and jerks above 97 % of their limits."""
    shock: float = 0.0
    """Weight of squared joint jerks as multiples of their limit, as a logarithm: gentle contact."""
    start: float = 0.03
    """Weight of squared joint velocities after the first step: start gently."""
    tail: float = 1.0
    """Factor of the mean over the worst twentieth of the batch, added to the mean over all."""
    margin: float = 6e-4
    """Part of the clearance that is kept free [m]."""
    aim: float = 1.5e-4
    """Height above the seat that is aimed at [m]: a bottle pressed onto the floor is pushed aside."""
    slope: float = 4.0
    """Slope of the funnel above the mouth: lateral distance allowed per height."""
    early: int = 1
    """Steps before the end from which goal terms count."""


def loss(task: Insertion, trajectory: Trajectory, weights: InsertionWeights, funnel: float = 1.0) -> dict[str, Tensor]:
    """Return the terms per episode, each (B,). funnel: factor of non-penetration, for a slow start."""
    w, T = weights, task.options.horizon
    states = aligned(trajectory)
    position, tilt, velocity = task.errors(states)
    position = position - position.new_tensor([0.0, 0.0, w.aim])
    last = T - w.early
    goal = goal_terms(position[last:], tilt[last:], velocity[last:], w)
    joints = states[..., ARM_V]
    speeds = joints.square().sum(-1)
    return {
        "position": goal["position"].mean(0),
        "tilt": goal["tilt"].mean(0),
        "rest": goal["rest"][1:].mean(0),
        "far": goal["far"][1:].mean(0),
        "funnel": funnel * outside(position[: T + 1], tilt[: T + 1], w, task.room).mean(0),
        "floor": funnel * below(position[T - BELOW_FROM :], tilt[T - BELOW_FROM :], w).mean(0),
        "smoothness": w.smoothness * speeds.mean(0),
        "limits": w.limits * too_fast(task, joints).mean(0),
        "dynamics": w.dynamics * too_hard(task, joints),
        "shock": w.shock * shock(task, joints) if w.shock else torch.zeros_like(speeds[0]),
        "start": w.start * trajectory.states[1, ..., ARM_V].square().sum(-1),
    }


def total(terms: Mapping[str, Tensor], weights: InsertionWeights) -> Tensor:
    """Return the mean over the batch, plus that over its worst twentieth times `tail`."""
    each = torch.stack(list(terms.values())).sum(0)
    worst = torch.topk(each, max(each.numel() // 20, 1)).values
    return each.mean() + weights.tail * worst.mean()


def goal_terms(position: Tensor, tilt: Tensor, velocity: Tensor, w: InsertionWeights) -> dict[str, Tensor]:
    """Return what errors (see `Insertion.errors`) at one moment add, each of the shape of tilt."""
    r_position, r_tilt, r_speed = _norm(position) / POSITION_UNIT, tilt / TILT_UNIT, _norm(velocity) / SPEED_UNIT
    away = r_position / 2 + 0.3 * r_tilt + 0.2 * r_speed
    return {
        "position": w.position * torch.log1p(r_position.square()),
        "tilt": w.tilt * torch.log1p(r_tilt.square()),
        "rest": w.rest * torch.log1p(4 * r_speed.square()),
        "far": w.far * away.clamp(max=200.0),
    }


def outside(
    position: Tensor, tilt: Tensor, w: InsertionWeights, room: tuple[float, float] = (CLEARANCE, 0.0)
) -> Tensor:
    """Return how far the bottle leaves the funnel [mm], as a logarithm, of the shape of tilt. room: clearance and chamfer [m]."""
    clearance, chamfer = room
    z = position[..., 2]
    # A tilted bottle is wider at its foot, and once inside also at the mouth.
    width = _norm(position[..., :2]) + (BOTTLE_RADIUS + torch.relu(DEPTH - z) / 2) * tilt
    # A bottle on a chamfer is where it should be: nothing is kept free.
    free = 0.0 if chamfer else w.margin
    allowed = (
        clearance - free + torch.clamp(z - DEPTH + chamfer, 0.0, chamfer) + w.slope * torch.relu(z - DEPTH - 0.003)
    )
    return w.funnel * torch.log1p((torch.relu(width - allowed) / 1e-3).square())


def too_fast(task: Insertion, velocities: Tensor) -> Tensor:
    """Return how far joint velocities (..., 6) exceed 97 % of their limits, in hundredths of these, squared and summed."""
    return (100 * torch.relu(velocities.abs() / task.max_velocity.to(velocities.dtype) - 0.97)).square().sum(-1)


def too_hard(task: Insertion, velocities: Tensor) -> Tensor:
    """Return how far accelerations and jerks of joint velocities (T, B, 6) exceed 97 % of their limits, as a logarithm, (B,)."""
    o, total = task.options, velocities.new_zeros(velocities.shape[1])
    acceleration = velocities.diff(dim=0) / o.dt
    for rate, limit in ((acceleration, o.acceleration_limit), (acceleration.diff(dim=0) / o.dt, o.jerk_limit)):
        if limit:
            total = total + torch.log1p((50 * torch.relu(rate.abs() / limit - 0.97)).square()).sum((0, -1))
    return total


def shock(task: Insertion, velocities: Tensor) -> Tensor:
    """Return the sum of squares of jerks of joint velocities (T, B, 6), as multiples of their limit, as a logarithm, (B,)."""
    jerk = velocities.diff(dim=0).diff(dim=0) / task.options.dt**2
    return torch.log1p((jerk / (task.options.jerk_limit or JERK_UNIT)).square().sum((0, -1)))


def below(position: Tensor, tilt: Tensor, w: InsertionWeights) -> Tensor:
    """Return how far the lowest point of the foot comes below half the height aimed at [0.1 mm], as a logarithm."""
    low = BOTTLE_RADIUS * tilt - position[..., 2] - w.aim / 2
    return w.floor * torch.log1p((torch.relu(low) / 1e-4).square())


def _norm(x: Tensor) -> Tensor:
    """Return the length along the last dimension, smooth at zero."""
    return (x.square().sum(-1) + 1e-10).sqrt()
