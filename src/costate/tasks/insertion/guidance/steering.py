"""Parts of a motion into the socket: heights over time, gains that end at rest, the servos' answer, inverse kinematics.

All of it is known of a real cell beforehand. `guide.py` makes a controller of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from costate.tasks.insertion.scene import ARM_Q, ARM_V, DEPTH, SOCKET_V, SOCKET_XY

if TYPE_CHECKING:
    from costate.tasks.insertion.cell import Cell

ARRIVAL, EARLY = 0.5, 1 / 16
"""Part of the horizon after which the bottle is over the mouth, and part of it that is left when the bottle is seated."""
ABOVE = 5e-3
"""Height of the foot above the mouth when the bottle is over it [m]."""
TRIED = (0.2, 1.5, 1.0)
"""Joint positions about the middle, velocities, and commands beyond these that the servos' answer is learnt from [rad, rad/s]."""
AFTER = 8
"""Control steps from a change of the belt's speed, half-way, until the bottle is over the mouth."""
SAMPLES, SPREAD = 1000, 1.15
"""Points that polynomials for inverse kinematics are fitted to; factor of the ranges that these come from."""


def heights(times: np.ndarray, steps: int, arrival: int, start: float, end: float) -> np.ndarray:
    """Return the foot's height above its seat [m] at times in control steps: least jerk, at rest at both ends."""
    spans = arrival, steps - arrival
    A, b, row = np.zeros((12, 12)), np.zeros(12), 0
    fixed = [(0, 0.0, d, start if d == 0 else 0.0) for d in range(3)] + [
        (1, 1.0, d, end if d == 0 else 0.0) for d in range(3)
    ]
    for part, at, derivative, value in [*fixed, (0, 1.0, 0, DEPTH + ABOVE), (1, 0.0, 0, DEPTH + ABOVE)]:
        A[row, 6 * part : 6 * part + 6] = _powers(at, derivative, spans[part])
        b[row], row = value, row + 1
    for derivative in range(1, 5):  # smooth in between
        A[row] = np.concatenate([_powers(1.0, derivative, spans[0]), -_powers(0.0, derivative, spans[1])])
        row += 1
    c = np.linalg.solve(A, b)
    t = np.clip(times, 0, steps)
    first, second = (
        np.stack([_powers(u, 0, 1) for u in (np.ravel(t) - begin) / span]) @ part
        for begin, span, part in zip((0, arrival), spans, (c[:6], c[6:]), strict=True)
    )
    return np.where(np.ravel(t) < arrival, first, second).reshape(t.shape)


def _powers(u: float, derivative: int, span: float) -> np.ndarray:
    """Return what each coefficient of a polynomial of degree 5 in u = t / span adds to a derivative by t."""
    factors = [np.prod(range(k - derivative + 1, k + 1)) for k in range(6)]
    return np.array([f * u ** (k - derivative) if k >= derivative else 0.0 for k, f in enumerate(factors)]) / (
        span**derivative
    )


def gains(left: int, late: float) -> tuple[float, float]:
    """Return how the next velocity follows from position and velocity, per step, if both are to vanish after `left` steps.

    Squared accelerations are least. late: part of a change of velocity that counts in the step in which it happens.
    """
    n = max(left, 2)
    change = np.eye(n) - np.eye(n, k=-1)
    way = np.ones(n)
    way[-1] = late
    ends = np.stack([way, np.eye(n)[-1]])
    K = np.block([[change.T @ change, ends.T], [ends, np.zeros((2, 2))]])
    b = np.zeros((n + 2, 2))
    b[0, 1], b[n] = 1.0, (-1.0, late - 1.0)
    position, velocity = np.linalg.solve(K, b)[0]
    return float(position), float(velocity)


@dataclass(frozen=True)
class Answer:
    """Effect of a command in a control step, as linear functions of `moments` about a configuration."""

    middle: Tensor
    """Configuration (6,)."""
    faster: Tensor
    """Change of the velocity, from the moments of command - velocity, (78, 6)."""
    moved: Tensor
    """Movement beyond dt * velocity, from the same, (78, 6)."""
    inverse: Tensor
    """Command - velocity, from the moments of a change of the velocity, (78, 6)."""
    late: float
    """Part of a change of velocity that counts in the step in which it happens."""


def moments(q: Tensor, v: Tensor, u: Tensor) -> Tensor:
    """Return u, and all products of q with u and of v with v: (..., 6) each -> (..., 78)."""
    products = [a.unsqueeze(-1) * b.unsqueeze(-2) for a, b in ((q, u), (v, v))]
    return torch.cat([u, *(p.flatten(-2) for p in products)], -1)


def answered(cell: Cell) -> Answer:
    """Learn the servos' answer from single steps of the world without contact, about the middle of the motion."""
    o, generator = cell.options, torch.Generator().manual_seed(0)

    def uniform(size: float) -> Tensor:
        return size * (2 * torch.rand(SAMPLES, 6, generator=generator, dtype=torch.float64) - 1)

    middle = cell.seats(torch.tensor(o.center, dtype=torch.float64), o.start_height / 2)
    state = cell.sample(SAMPLES, generator, torch.float64)
    q, v, u = uniform(TRIED[0]), uniform(TRIED[1]), uniform(TRIED[2])
    state[:, ARM_Q], state[:, ARM_V] = middle + q, v
    after = cell.smooth.step(state, v + u)
    faster, moved = after[:, ARM_V] - v, after[:, ARM_Q] - middle - q - o.dt * v

    def fit(x: Tensor, y: Tensor) -> Tensor:
        return torch.linalg.lstsq(moments(q, v, x), y, driver="gelsd").solution

    answer, way = fit(u, faster), fit(u, moved)
    late = torch.linalg.solve(answer[:6], way[:6], left=False).diagonal().mean() / o.dt
    return Answer(middle, answer, way, fit(faster, u), float(late))


def sag(cell: Cell, q: Tensor) -> Tensor:
    """Return by how much velocities are less than commands for a kilogram of payload that the servos are not told of, (6,)."""
    damping = torch.tensor([d.damping for d in cell.smooth.setup.drives], dtype=torch.float64)
    unit = torch.eye(6, dtype=torch.float64)
    lift = cell.arm.link_velocity(q.expand(6, 6), unit, "bottle")[:, 2]
    return 9.81 * lift / damping


def monomials(points: Tensor, chosen: Sequence[Tensor]) -> Tensor:
    """Return products of coordinates (..., 3) up to degree 6, the constant included, (..., 84). chosen: see `factors`."""
    a, b, c, d, e, f = chosen
    one = torch.cat([torch.ones_like(points[..., :1]), points], -1)
    two = (one @ a) * (one @ b)
    three = (two @ c) * (one @ d)
    return (three @ e) * (three @ f)


def factors() -> list[Tensor]:
    """Return matrices of 0 and 1 that choose the factors of products: of pairs, of triples, and of six of (1, x, y, z)."""

    def numbers(n: int) -> dict[tuple[int, ...], int]:
        return {k: i for i, k in enumerate(combinations_with_replacement(range(4), n))}

    chosen = []
    for degree, first in ((2, 1), (3, 2), (6, 3)):
        for part, of in ((slice(0, first), numbers(first)), (slice(first, degree), numbers(degree - first))):
            places = torch.tensor([of[k[part]] for k in numbers(degree)])
            chosen.append(torch.nn.functional.one_hot(places, len(of)).T.double())
    return chosen


@dataclass(frozen=True)
class Upright:
    """Joint positions that hold the bottle upright over or in the socket, as polynomials of x, y and height."""

    middle: Tensor
    """Middle of x, y and height [m], (3,)."""
    half: Tensor
    """Half of their ranges [m], (3,)."""
    coefficients: Tensor
    """Coefficients (84, 6) of the monomials of (place - middle) / half."""


def upright(cell: Cell) -> Upright:
    """Fit the polynomials to inverse kinematics where sockets of the task may come."""
    o, generator = cell.options, torch.Generator().manual_seed(0)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    state = cell.sample(SAMPLES, generator, torch.float64, SPREAD)
    change = o.disturbances.belt_change * (2 * uniform(SAMPLES, 2) - 1) / 2
    xy = state[:, SOCKET_XY] + (o.seconds + o.hold * o.dt) * uniform(SAMPLES, 1) * (state[:, SOCKET_V] + change)
    place = torch.cat([xy, o.start_height * 1.1 * uniform(SAMPLES, 1)], -1)
    low, high = place.min(0).values, place.max(0).values
    middle, half = (low + high) / 2, (high - low) / 2
    features = monomials((place - middle) / half, factors())
    return Upright(middle, half, torch.linalg.lstsq(features, cell.seats(xy, place[:, 2:])).solution)
