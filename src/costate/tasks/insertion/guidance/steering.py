"""Parts of a motion into the socket: heights over time, gains that end at rest, the servos' answer, inverse kinematics.

All of it is known of a real cell beforehand. `guide.py` makes a controller of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from costate.tasks.insertion.scene import ARM_Q, ARM_V, BOTTLE_MASS, DEPTH, SOCKET_V, SOCKET_XY

if TYPE_CHECKING:
    from costate.tasks.insertion.cell import Cell

ABOVE = 1e-3
"""Height of the foot above the mouth when the bottle is over it [m]."""
BRAKING, EARLY = 1.4, 0.2
"""Exponent of the speed on the way down (the larger, the softer its end), and control steps before the horizon when it ends."""
CAREFUL = 3e-3
"""Way down on which the bottle stays slow where there is a chamfer [m]: to the mouth, past the chamfer, and a little more."""
EVEN = 0.7
"""Exponent by which accelerations above the mouth are made more even: 0 lets them rise and fall in a line, which has the least sum
of squares; 1 would give the same acceleration all the time, with a jump half-way, which has the least peak."""
FAST, TRIED = 0.19, (0.2, 0.3)
"""Ranges of the motions that the servos' answer is fitted to: how far the bottle goes along each axis beyond the range of sockets
in one horizon [m], and how far velocities and commands are from that motion [rad per horizon]."""
LEAST = 4
"""Steps in which an error is to vanish at least."""
AFTER = 8
"""Control steps from a change of the belt's speed, half-way, until the bottle is over the mouth."""
DEGREES = (9, 7, 5)
"""Degrees of polynomials for inverse kinematics: in the distance from the arm's axis, the tangent of half the angle about it, and
the height. The angle turns the first joint and the last one alone, so its powers need no products with those of others."""
SAMPLES, SPREAD = 4000, 1.15
"""Points that polynomials for inverse kinematics, and the servos' answer, are fitted to; factor of the ranges of these."""


def heights(times: np.ndarray, steps: int, arrival: int, end: float, slow: float = 0.0) -> np.ndarray:
    """Return the foot's height above its seat [m] at times in control steps, if it arrives over the mouth after `arrival` of them.

    From there on its speed falls as (1 - s^2)^BRAKING with the part s of the time; before, it is even.
    slow: speed over the mouth and the first CAREFUL metres [m per control step], before it goes faster; 0: as it comes.
    """
    top, span = DEPTH + ABOVE, steps - EARLY - arrival
    s, part = (times - arrival) / span, np.linspace(0, 1, 1001)
    speed = (1 - part**2) ** BRAKING
    if slow:
        u = np.clip((part - CAREFUL / (slow * span)) / (1 - CAREFUL / (slow * span)), 0, 1)
        rest = (u * (1 - u)) ** 2
        speed = speed + ((top - end) / (slow * span) - speed.mean()) * rest / rest.mean()
    way = np.concatenate([[0.0], np.cumsum(speed[1:] + speed[:-1]) / 2000])
    return top - (top - end) / way[-1] * (speed[0] * np.minimum(s, 0) + np.interp(s, part, way))


@dataclass(frozen=True)
class Usual:
    """The usual motion: joints arrive over the mouth with the least sum of squared accelerations, then the bottle goes down."""

    steps: int
    """Control steps until the bottle is seated."""
    arrival: int
    """Control steps until it is over the mouth."""
    aim: float
    """Height above the seat where it ends [m]."""
    slow: float = 0.0
    """See `heights`."""

    def heights(self, times: np.ndarray) -> np.ndarray:
        """Return the foot's height above its seat [m] at times in control steps."""
        return heights(times, self.steps, self.arrival, self.aim, self.slow)

    def gains(self, late: float) -> np.ndarray:
        """Return the gains of position and velocity in each step up to the horizon, (steps + 1, 2)."""
        left = [max(self.arrival - k, LEAST) for k in range(self.steps + 1)]
        return np.array([gains(n, self.arrival, late) for n in left])


def gains(left: int, steps: int, late: float) -> tuple[float, float]:
    """Return how the next velocity follows from position and velocity, per step, if both are to vanish after `left` of `steps`.

    Squared accelerations are least, with weights that are smaller in the middle of the steps. late: part of a change of velocity
    that counts in the step in which it happens.
    """
    n = max(left, 2)
    change = np.eye(n) - np.eye(n, k=-1)
    way = np.ones(n)
    way[-1] = late
    ends = np.stack([way, np.eye(n)[-1]])
    off = np.abs(1 - 2 * (steps - n + np.arange(n) + 0.5) / steps)  # from the middle
    weights = np.diag((off + 1 / steps) ** EVEN)
    K = np.block([[change.T @ weights @ change, ends.T], [ends, np.zeros((2, 2))]])
    b = np.zeros((n + 2, 2))
    b[0, 1], b[n] = weights[0, 0], (-1.0, late - 1.0)
    position, velocity = np.linalg.solve(K, b)[0]
    return float(position), float(velocity)


@dataclass(frozen=True)
class Answer:
    """Effect of a command in a control step, as linear functions of `moments` about a configuration."""

    middle: Tensor
    """Configuration (6,)."""
    faster: Tensor
    """Change of the velocity, from the moments of command - velocity, (n, 6)."""
    moved: Tensor
    """Movement beyond dt * velocity, from the same, (n, 6)."""
    inverse: Tensor
    """Command - velocity, from the moments of a change of the velocity, (n, 6)."""
    late: float
    """Part of a change of velocity that counts in the step in which it happens."""
    far: Tensor
    """Distance from the configuration up to which it was learnt [rad], (6,)."""
    missed: Tensor
    """Error of the change of the velocity, root of the mean square [rad/s], (6,)."""


PLAIN = 351
"""Number of moments without those of the payload."""
PAIRS, TRIPLES = (torch.tensor(list(combinations_with_replacement(range(5), n))).T for n in (2, 3))
"""Numbers of the factors of products of 1 and four joint positions."""


def moments(q: Tensor, v: Tensor, u: Tensor, load: Tensor | None = None) -> Tensor:
    """Return products that a step's effect is linear in: (..., 6) each -> (..., 351).

    u times polynomials of degree 3 in q, v v times those of degree 1, and v u. Inertias do not depend on the first joint, whose
    axis is vertical, and on the last one, which turns the bottle about its own axis.
    load: mass of the bottle beyond the usual one [kg], (..., 1); its products with polynomials of degree 2 in q, with itself and
    with u come last, (..., 373).
    """
    one = torch.cat([torch.ones_like(q[..., :1]), q[..., 1:5]], -1)
    (i, j), (k, m) = PAIRS, torch.triu_indices(6, 6)
    two = one[..., i] * one[..., j]
    three = one[..., TRIPLES[0]] * one[..., TRIPLES[1]] * one[..., TRIPLES[2]]
    parts = [(three, u), (one, v[..., k] * v[..., m]), (v, u)]
    heavier = [] if load is None else [load * torch.cat([two, load, u], -1)]
    return torch.cat([*((a.unsqueeze(-1) * b.unsqueeze(-2)).flatten(-2) for a, b in parts), *heavier], -1)


def rows_of_u(count: int) -> list[slice]:
    """Return the ranges of `count` moments whose last factor is u."""
    found = [slice(0, 6 * TRIPLES.shape[1]), slice(PLAIN - 36, PLAIN)]
    return found if count == PLAIN else [*found, slice(count - 6, count)]


@lru_cache(maxsize=8)
def answered(cell: Cell, fit: Upright, payload: float = 0.0) -> Answer:
    """Learn the servos' answer from single steps of the world without contact, in motions over and into the socket.

    payload: largest difference of the bottle's mass from the one that the servos are told of [kg].
    Cached, like `upright`: every policy of a task asks for the same.
    """
    o, generator = cell.options, torch.Generator().manual_seed(0)

    def uniform(size: float, count: int = 6) -> Tensor:
        return size * (2 * torch.rand(SAMPLES, count, generator=generator, dtype=torch.float64) - 1)

    middle = cell.seats(torch.tensor(o.center, dtype=torch.float64), o.start_height / 2)
    place, speed = places(cell, generator), uniform((FAST + o.target_range) / o.seconds, 3) * o.dt
    before, after = (fit(place + side * speed / 2) for side in (-1, 1))
    q = (before + after) / 2 - middle + uniform(o.start_range)
    v, u = (after - before) / o.dt + uniform(TRIED[0] / o.seconds), uniform(TRIED[1] / o.seconds)
    state = cell.sample(SAMPLES, generator, torch.float64)
    state[:, ARM_Q], state[:, ARM_V] = middle + q, v
    load = uniform(payload, 1) if payload else None
    if load is None:
        then = cell.smooth.step(state, v + u)
    else:
        then = cell.smooth_payload.step(state, v + u, {"mass:ur5/bottle": BOTTLE_MASS + load})
    faster, moved = then[:, ARM_V] - v, then[:, ARM_Q] - middle - q - o.dt * v

    def learnt(x: Tensor, y: Tensor) -> Tensor:
        return fitted(moments(q, v, x, load), y)

    answer, way = learnt(u, faster), learnt(u, moved)
    late = torch.linalg.solve(answer[:6], way[:6], left=False).diagonal().mean() / o.dt
    missed = (moments(q, v, u, load) @ answer - faster).square().mean(0).sqrt()
    return Answer(middle, answer, way, learnt(faster, u), float(late), q.abs().amax(0), missed)


def fitted(features: Tensor, values: Tensor) -> Tensor:
    """Return the coefficients (n, m) of features (N, n) by which values (N, m) are met best.

    torch's usual solver of such problems, gelsy, reads memory that it has not written (up to 2.13 at least): its last bits change
    from call to call.
    """
    return torch.linalg.lstsq(features, values, driver="gelsd").solution


def monomials(points: Tensor) -> Tensor:
    """Return products of powers of the first and the last of three coordinates, and powers of the second, (..., 3) -> (..., 67)."""
    x, y, z = (_powers(c, degree) for c, degree in zip(points.split(1, -1), DEGREES, strict=True))
    return torch.cat([(x.unsqueeze(-1) * z.unsqueeze(-2)).flatten(-2), y[..., 1:]], -1)


def _powers(x: Tensor, degree: int) -> Tensor:
    """Return 1, x, x^2, ..., (..., 1) -> (..., degree + 1)."""
    powers = [torch.ones_like(x)]
    for _ in range(degree):
        powers.append(powers[-1] * x)
    return torch.cat(powers, -1)


def polar(place: Tensor) -> Tensor:
    """Return distance from the arm's axis, tangent of half the angle about it, and height, of (x, y, height), (..., 3)."""
    x, y, z = place.split(1, -1)
    r = (x.square() + y.square()).sqrt()
    return torch.cat([r, y / (r + x), z], -1)


@dataclass(frozen=True, eq=False)
class Upright:
    """Joint positions that hold the bottle upright over or in the socket, as polynomials of `polar` places."""

    middle: Tensor
    """Middle of polar places, (3,)."""
    half: Tensor
    """Half of their ranges, (3,)."""
    coefficients: Tensor
    """Coefficients (67, 6) of the monomials of (polar place - middle) / half."""

    def __call__(self, place: Tensor) -> Tensor:
        """Return joint positions (..., 6) at places (..., 3)."""
        return monomials((polar(place) - self.middle) / self.half) @ self.coefficients


def places(cell: Cell, generator: torch.Generator) -> Tensor:
    """Draw x, y and height of the bottle above seats where sockets of the task may come [m], (SAMPLES, 3)."""
    o = cell.options

    def uniform(count: int) -> Tensor:
        return torch.rand(SAMPLES, count, generator=generator, dtype=torch.float64)

    state = cell.sample(SAMPLES, generator, torch.float64, SPREAD)
    change = o.disturbances.belt_change * (2 * uniform(2) - 1) / 2
    xy = state[:, SOCKET_XY] + (o.seconds + o.hold * o.dt) * uniform(1) * (state[:, SOCKET_V] + change)
    return torch.cat([xy, o.start_height * 1.1 * uniform(1)], -1)


@lru_cache(maxsize=8)
def upright(cell: Cell) -> Upright:
    """Fit the polynomials to inverse kinematics."""
    place = places(cell, torch.Generator().manual_seed(0))
    at = polar(place)
    low, high = at.min(0).values, at.max(0).values
    middle, half = (low + high) / 2, (high - low) / 2
    features = monomials((at - middle) / half)
    return Upright(middle, half, fitted(features, cell.seats(place[:, :2], place[:, 2:])))
