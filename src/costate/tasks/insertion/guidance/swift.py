"""Swift motions: for horizons so short that joints need most of the acceleration that they may have.

Above the mouth each joint speeds up at an acceleration a, then slows down at a, or the other way round; no motion that arrives in
time, at the wanted velocity, has a lower peak. Where it would become too fast, it goes on at its highest velocity in between. Down
in the socket the bottle goes on evenly, then slows down evenly. When it is over the mouth, and how fast, is chosen so that the
joints of nearly all episodes need as little acceleration as possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from costate.tasks.insertion.guidance.steering import LEAST, Usual, gains
from costate.tasks.insertion.scene import ARM_Q, DEPTH, SOCKET_V, SOCKET_XY

if TYPE_CHECKING:
    from costate.tasks.insertion.cell import Cell
    from costate.tasks.insertion.guidance.steering import Upright

PRESSED = 0.8
"""Part of the limit of acceleration from which on a motion has to be swift."""
ARRIVING = ((4e-3, 0.75, 1.0), (8e-3, 0.85, 1.5), (12e-3, 0.85, 1.5))
"""Ways to arrive, tried in this order until one suits most episodes: depth of the foot below the mouth when joints have arrived
[m], part of the velocity limits that they then have at most, and control steps for which the bottle goes on evenly at least (from
speeding up to braking at once would be a jerk). A little before they have arrived, joints are near enough to pass the edge: the
deeper that is, the more time they have, and the more bottles touch the edge."""
LATER, OVER = 0.4, 1.5e-4
"""Control steps after the horizon when the bottle would come to rest, and how far above the height aimed at [m]. When time is up it
is as near as success asks for, and its speed then takes it further."""
HASTY = 7
"""Steps before the arrival down to which `swift_change` steers the joints; then exact gains do."""
RESTING = (-0.1, 0.0)
"""Gains of position and velocity after the horizon."""
EPISODES, MOST = 1000, 0.998
"""Number of episodes that a motion is chosen for, and the part of them that it should suit."""
SPEEDS = tuple(0.05 * k for k in range(8, 25))
"""Speeds of the bottle that are tried [m/s]."""
LOW, TOP = 0.7, 0.8
"""Parts of the velocity limits: joints do not come to the first without need, and are not planned to be faster than the second on
the way. Commands end at 95 %, and servos lag behind them."""
HARD = 0.98
"""Part of the largest acceleration that is used to keep velocities low."""
TINY, NEVER = 1e-6, 1e9
"""Keeps divisions and roots from zero; an acceleration, or a time, of what does not happen."""


@dataclass(frozen=True)
class Swift:
    """A swift motion."""

    steps: int
    """Control steps until the bottle is seated."""
    arrival: int
    """Control steps until the joints have arrived."""
    aim: float
    """Height above the seat where it ends [m]."""
    speed: float
    """Speed of the bottle when the joints have arrived [m per control step]."""
    inside: float = ARRIVING[0][0]
    """Depth of the foot below the mouth then [m]."""

    def heights(self, times: np.ndarray) -> np.ndarray:
        """Return the foot's height above its seat [m] at times in control steps."""
        left, brake = np.maximum(self.steps + LATER - times, 0.0), self.braking
        way = np.where(left < brake, left**2 / (2 * brake), left - brake / 2)
        return self.aim + OVER + self.speed * way

    @property
    def braking(self) -> float:
        """Control steps in which it slows down."""
        return 2 * (self.steps + LATER - self.arrival - (DEPTH - self.inside - OVER - self.aim) / self.speed)

    def gains(self, late: float) -> np.ndarray:
        """Return the gains of position and velocity in each step up to the horizon, (steps + 1, 2)."""
        left = [max(self.arrival - k, 2) if k < self.arrival else LEAST for k in range(self.steps)]
        return np.array([*(gains(n, self.arrival, late) for n in left), RESTING])


def least_peak(error: Tensor, change: Tensor, left: Tensor | float, dt: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the motion of least peak acceleration in which an error, and a difference of velocities, vanish.

    It has an acceleration a until t1, none until t2 - a control step, or less if that does -, and then -a.

    error: position beyond a reference that moves evenly. change: velocity of that, less that of the joint. left: time [s].
    Returns: sign and size of a, t1 and t2.
    """
    excess = left * change / 2 - error
    side, excess = torch.where(excess < 0, -1.0, 1.0).to(error.dtype), excess.abs()
    rest = (2 * excess / (change.abs() + TINY)).clamp(max=dt)
    span = left**2 - rest.square()
    peak = (2 * excess + (4 * excess.square() + span * change.square() + TINY**2).sqrt()) / span
    first = (left - rest + side * change / peak) / 2
    return side, peak, first, first + rest


def capped_peak(
    side: Tensor, error: Tensor, change: Tensor, v: Tensor, left: Tensor | float, top: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same if velocities come up to `top`, and stay there from t1 to t2."""
    now, then = top - side * v, top - side * (v + change)
    room = top * left - side * ((v + change) * left - error)
    peak = (now.square() + then.square() + TINY) / (2 * room.clamp(min=1e-4))
    return peak, now / peak, left - then / peak


def swift_change(
    error: Tensor, change: Tensor, v: Tensor, left: Tensor, low: Tensor, limit: float, dt: float
) -> Tensor:
    """Return the change of velocity in the next control step, (..., 6).

    low: velocity that a joint does not come to without need [rad/s], (6,). limit: largest change of velocity in a step [rad/s].
    """
    side, peak, until, since = least_peak(error, change, left, dt)
    # With nearly all the acceleration that there is, the highest velocity would be the lower root of V^2 - b V + c.
    most = HARD * limit / dt
    b = side * (2 * v + change) + most * left
    c = (v.square() + (v + change).square()) / 2 + most * side * ((v + change) * left - error)
    top = torch.maximum(low, (b - (b.square() - 4 * c).clamp(min=TINY).sqrt()) / 2)
    fast = side * v + peak * until > top
    capped = capped_peak(side, error, change, v, left, top)
    peak, until, since = (torch.where(fast, a, b) for a, b in zip(capped, (peak, until, since), strict=True))
    return side * peak * (until.clamp(0.0, dt) - (dt - since).clamp(0.0, dt))


def swift_motion(cell: Cell, fit: Upright, usual: Usual) -> Swift | None:
    """Return the motion of least acceleration; None if the usual one needs little enough."""
    o = cell.options
    if not o.acceleration_limit:
        return None
    state = cell.sample(EPISODES, torch.Generator().manual_seed(0), torch.float64)
    speed = float(-np.diff(usual.heights(np.array([-1.0, 0.0])))[0])
    asked = Swift(usual.steps, usual.arrival, usual.aim, speed)
    if float(_needed(cell, fit, state, asked, NEVER, ARRIVING[0][1]).quantile(MOST)) < PRESSED * o.acceleration_limit:
        return None
    chosen, suited = None, -1.0
    for inside, passing, evenly in ARRIVING:
        tried = _tried(usual, inside, evenly, o.dt)
        if not tried:
            continue
        needs = torch.stack([_needed(cell, fit, state, way, way.braking * o.dt, passing) for way in tried])
        suits = (needs <= HARD * o.acceleration_limit).double().mean(-1)
        if float(suits.max()) >= MOST:
            return tried[int(needs.quantile(MOST, -1).argmin())]
        if float(suits.max()) > suited:
            chosen, suited = tried[int(suits.argmax())], float(suits.max())
    return chosen


def _tried(usual: Usual, inside: float, evenly: float, dt: float) -> list[Swift]:
    """Return the motions to choose from that arrive at a depth [m]."""
    times = range(usual.steps // 2, usual.steps - 5)
    tried = [Swift(usual.steps, arrival, usual.aim, dt * speed, inside) for arrival in times for speed in SPEEDS]
    return [way for way in tried if 1 < way.braking < way.steps + LATER - way.arrival - evenly]


def _needed(cell: Cell, fit: Upright, state: Tensor, way: Swift, brake: float, passing: float) -> Tensor:
    """Return the peak of acceleration that each episode needs [rad/s^2], (B,).

    brake: time of braking [s]. passing: part of the velocity limits that joints may have when they have arrived.
    """
    dt, time, belt = cell.options.dt, way.arrival * cell.options.dt, state[:, SOCKET_V]
    place = pad(state[:, SOCKET_XY] + time * belt, (0, 1), value=DEPTH - way.inside)
    down = torch.tensor([0.0, 0.0, way.speed], dtype=torch.float64)
    on = pad(belt * dt, (0, 1)) - down
    change = (fit(place + on / 2) - fit(place - on / 2)) / dt
    error = state[:, ARM_Q] - (fit(place) - time * change)
    fastest = cell.max_velocity.double()
    side, peak, first, _ = least_peak(error, change, time, dt)
    capped, _, _ = capped_peak(side, error, change, torch.zeros_like(change), time, TOP * fastest)
    peak = torch.where(peak * first > TOP * fastest, capped, peak).masked_fill(change.abs() > passing * fastest, NEVER)
    seat = place * torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    slowing = (fit(seat + down) - fit(seat)).abs() / (dt * brake)
    return torch.maximum(peak, slowing).amax(-1)
