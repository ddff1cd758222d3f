"""Calibration: a guide and its observer learn how the servos of a cell answer, from a short recording of commands and sensors.

The model of the servos predicts the change of velocities in a step, x, and how far joints move besides. What was measured is fitted
by x B, and the movement by a matrix M likewise: least squares with a pull towards 1, so that a short and noisy recording corrects
the model only as far as it can tell. Everything else about the arm stays as the model has it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.tasks.insertion.guidance.guided import GuidedPolicy
from costate.tasks.insertion.guidance.steering import rows_of_u
from costate.tasks.insertion.scene import ARM_Q, ARM_V, BOTTLE_MASS, SOCKET_XY

if TYPE_CHECKING:
    from costate.tasks.insertion.episode import Disturbances
    from costate.tasks.insertion.guidance.guide import Guide
    from costate.tasks.insertion.task import Insertion
    from costate.train.episode import Stepper

PRIOR = 0.05
"""Differences of B and M from 1 that are expected."""
RUNS, STEPS = 60, 100
"""Number of motions of a recording, and control steps of each: a minute in all with steps of 10 ms."""
WINDOW = 5
"""Control steps over which movements are compared."""
SHAKE, PULL, CLEAR = 0.4, 1.0, 5.0
"""Largest random velocity of joints in a recording [rad/s], how they are drawn back to where they began [1/s], and how far away the
socket is then [m]."""


@dataclass(frozen=True)
class Recording:
    """Motions of an arm with the usual bottle, away from everything that it could touch."""

    q: Tensor
    """Measured joint positions [rad], (T + 1, B, 6)."""
    v: Tensor
    """Measured joint velocities [rad/s], (T + 1, B, 6)."""
    commands: Tensor
    """Commanded velocities [rad/s], (T, B, 6): the first one when the first measurement was taken."""


def record(task: Insertion, world: Stepper, generator: torch.Generator, noise: Disturbances) -> Recording:
    """Make a recording in a world: every joint follows random velocities, which change every other step.

    noise: of the sensors; the latency is theirs, too, in steps.
    """

    def normal(size: float) -> Tensor:
        return size * torch.randn(RUNS, 6, generator=generator, dtype=torch.float64)

    state = task.sample(RUNS, generator, torch.float64)
    state[:, SOCKET_XY] += CLEAR
    begun, q, v, commands = state[:, ARM_Q], [], [], []
    for step in range(STEPS + 1):
        seen = state[:, ARM_Q] + normal(noise.joint_noise)
        q.append((seen / noise.encoder).round() * noise.encoder if noise.encoder else seen)
        v.append(state[:, ARM_V] + normal(noise.velocity_noise))
        if step % 2 == 0:
            shake = SHAKE * (2 * torch.rand(RUNS, 6, generator=generator, dtype=torch.float64) - 1)
        commands.append(shake + PULL * (begun - q[-1]))
        late = step - noise.latency
        acting = commands[late] if late >= 0 else torch.zeros_like(shake)
        state = world.step(state, acting, {"mass:ur5/bottle": torch.full_like(shake[:, :1], BOTTLE_MASS)})
    return Recording(torch.stack(q), torch.stack(v), torch.stack(commands[:-1]))


def calibrated(policy: GuidedPolicy, recording: Recording) -> GuidedPolicy:
    """Return a controller like this one whose model of the servos fits a recording, whatever its latency."""
    policy = copy.deepcopy(policy).double()
    guide, q, v = policy.guide, recording.q.double(), recording.v.double()
    delays = range(1 if policy.observer is None else policy.observer.late + 1)
    fits = [_fitted(guide, q[d:], v[d:], recording.commands.double()[: len(q) - 1 - d]) for d in delays]
    B, M, _ = min(fits, key=lambda fit: fit[2])
    moved, faster = guide.changes.split(6, -1)
    guide.changes.copy_(torch.cat([moved @ M, faster @ B], -1))
    guide.inverse.copy_(_answering(guide.inverse, torch.linalg.inv(B)))
    return policy


def _fitted(guide: Guide, q: Tensor, v: Tensor, commands: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return B and M (6, 6), and the sum of squares of velocities left unexplained.

    What commands alone would have led to is the instrument of the fits: it has no part in the noise of the measurements, which both
    sides of them have.
    """
    load = torch.zeros_like(q[:-1, :, :1]) if guide.weighs else None

    def changes(q0: Tensor, v0: Tensor, q1: Tensor, v1: Tensor) -> tuple[Tensor, Tensor]:
        return (v1 - v0).flatten(0, 1), _windows(q1 - q0 - guide.dt * v0)

    foreseen = [(q[0], v[0])]
    for command in commands:
        foreseen.append(guide.predict(*foreseen[-1], command, None if load is None else load[0]))
    q_, v_ = (torch.stack(part) for part in zip(*foreseen, strict=True))
    w, w_moved = changes(q_[:-1], v_[:-1], q_[1:], v_[1:])
    x, moved = changes(q[:-1], v[:-1], *guide.predict(q[:-1], v[:-1], commands, load))
    y, way = changes(q[:-1], v[:-1], q[1:], v[1:])
    B, M = _mapped(w, x, y), _mapped(w_moved, moved, way)
    return B, M, float((y - x @ B).square().sum())


def _mapped(instrument: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the matrix (6, 6) that maps x to y best, with a pull towards 1."""
    one, pull = torch.eye(6, dtype=x.dtype), (y - x).square().mean() / PRIOR**2
    return one + torch.linalg.solve(instrument.T @ x + pull * one, instrument.T @ (y - x))


def _windows(steps: Tensor) -> Tensor:
    """Return sums over WINDOW steps in a row (T, B, 6) -> (n, 6): noise of positions counts but once in them."""
    return steps.unfold(0, WINDOW, 1).sum(-1).flatten(0, 1)


def _answering(inverse: Tensor, B: Tensor) -> Tensor:
    """Return the coefficients of commands (n, 6) if a change of velocity x asks for what x B did."""
    inverse = inverse.clone()
    for rows in rows_of_u(len(inverse)):
        inverse[rows] = torch.einsum("ij,ajk->aik", B, inverse[rows].unflatten(0, (-1, 6))).flatten(0, 1)
    return inverse
