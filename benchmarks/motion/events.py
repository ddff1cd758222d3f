"""The reference: motion from event to event, with the time of every impact solved to rounding.

At an impact the approach speed is reversed, times the restitution (Newton), and friction is Coulomb's: an impulse within the cone
that stops the sliding, or one at its bound against what sliding is left. With levers and friction these two laws can gain energy;
such an impulse is made smaller until it gains none. Bodies that would rest on each other are not treated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.motion.bodies import Array, Part
from benchmarks.motion.touch import Pair, Touch

STEP = 2e-3
"""Time after which distances are looked at [s]; the error of a Runge-Kutta step of this length is below 1e-10."""
OVERLAP = 1e-11
"""Depth from which shapes count as touching [m]: more than rounding."""
MOST = 40
"""Number of impacts in a motion beyond which it is taken for one that comes to rest."""
MOVES = 1e-30
"""Size of a complex step."""


class UnresolvedError(Exception):
    """The reference cannot follow this motion; the message is one of a few reasons."""


@dataclass(frozen=True)
class System:
    """Parts, and pairs that may touch."""

    parts: Sequence[Part]
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class Laws:
    """Numbers of a motion that are not part of its state."""

    restitution: float | complex
    friction: float | complex
    gravity: Array


@dataclass(frozen=True)
class Motion:
    """The end of a motion, and what happened on the way."""

    states: list[Array]
    times: list[float]
    """Times of the impacts [s]."""
    angles: list[float]
    """Approach speed at each impact, divided by the relative speed: small for a grazing one."""


def move(system: System, states: Sequence[Array], laws: Laws, seconds: float) -> Motion:
    """Follow a motion for some time."""
    states, now = list(states), 0.0 + 0j
    times: list[float] = []
    angles: list[float] = []
    while now.real < seconds - 1e-12:
        h = min(STEP, seconds - now.real) if seconds - now.real > STEP else seconds - now
        after = _flown(system, states, laws, h)
        hits = [p for p in system.pairs if _gap(system, p, after).real < -OVERLAP]
        if not hits:
            states, now = after, now + h
            continue
        time, pair = min(((_meeting(system, p, states, laws, h), p) for p in hits), key=lambda hit: hit[0].real)
        states, angle = _struck(system, pair, _flown(system, states, laws, time), laws)
        now = now + time
        times.append(now.real)
        angles.append(angle)
        if len(times) > MOST:
            raise UnresolvedError("rests or slides on")
    return Motion(states, times, angles)


def _flown(system: System, states: Sequence[Array], laws: Laws, time: float | complex) -> list[Array]:
    return [part.fly(x, laws.gravity, time) for part, x in zip(system.parts, states, strict=True)]


def _gap(system: System, pair: Pair, states: Sequence[Array]) -> complex:
    return complex(pair.touch(system.parts, states).gap)


def _meeting(system: System, pair: Pair, states: Sequence[Array], laws: Laws, h: float | complex) -> complex:
    """Solve for the time at which a pair meets: bisection for the real part, then Newton's method for all digits."""
    start = _gap(system, pair, states).real
    if start <= 1e-9 and _approach(system, pair, states) >= -1e-9:
        raise UnresolvedError("rests or slides on")  # it has just bounced, and is back within a step
    low, high = 0.0, complex(h).real
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _gap(system, pair, _flown(system, states, laws, middle)).real > 0 else (low, middle)
        )
    time = complex(high)
    for _ in range(6):
        there = _flown(system, states, laws, time)
        speed = _speeds(system, pair, there)[0]
        if abs(speed.real) < 1e-7:
            raise UnresolvedError("grazes")
        time = time - _gap(system, pair, there) / speed
    return time


def _approach(system: System, pair: Pair, states: Sequence[Array]) -> float:
    return _speeds(system, pair, states)[0].real


def _rows(system: System, pair: Pair, states: Sequence[Array]) -> tuple[Touch, Array, list[Array]]:
    """Return the place, the directions normal and along (3, 3), and the Jacobians of the owners along them."""
    found = pair.touch(system.parts, states)
    n = found.normal
    away = np.eye(3)[int(np.argmin(np.abs(n.real)))]
    t = away - n * (n @ away)
    t = t / np.sqrt(t @ t)
    axes = np.array([n, t, np.cross(n, t)])
    signs = (1, -1)
    J = [
        sign * axes @ system.parts[k].jacobian(states[k], found.point, link)
        for sign, (k, link) in zip(signs, pair.owners, strict=False)
    ]
    return found, axes, J


def _speeds(system: System, pair: Pair, states: Sequence[Array]) -> Array:
    _, _, J = _rows(system, pair, states)
    return sum(
        (j @ system.parts[k].velocity(states[k]) for j, (k, _) in zip(J, pair.owners, strict=True)),
        np.zeros(3, dtype=complex),
    )


def _struck(system: System, pair: Pair, states: list[Array], laws: Laws) -> tuple[list[Array], float]:
    _, _, J = _rows(system, pair, states)
    before = _speeds(system, pair, states)
    if before[0].real >= 0:
        raise UnresolvedError("grazes")
    owners = [k for k, _ in pair.owners]
    A = sum((system.parts[k].response(states[k], j) for j, k in zip(J, owners, strict=True)), np.zeros((3, 3)))
    impulse = solve_impact(np.asarray(A, complex), before, laws)
    work, twice = impulse @ before, impulse @ A @ impulse
    if (work + twice / 2).real > 1e-12 * abs(work.real):
        impulse = impulse * (-2 * work / twice)
    after = list(states)
    for j, k in zip(J, owners, strict=True):
        after[k] = system.parts[k].kicked(states[k], j.T @ impulse)
    return after, float(-before[0].real / np.linalg.norm(before.real))


def solve_impact(A: Array, before: Array, laws: Laws) -> Array:
    """Solve for the impulse of an impact: A impulse + before are the speeds after it.

    It is a fixed-point iteration, with shorter steps where friction that pushes into the contact keeps longer ones from settling.
    """
    for relaxed in (1.0, 0.3, 0.1):
        found = _iterated(A, before, laws, relaxed, rounds=int(1000 / relaxed))
        if found is not None:
            return found
    raise UnresolvedError("friction has no single answer")


def _iterated(A: Array, before: Array, laws: Laws, relaxed: float, rounds: int) -> Array | None:
    x = np.zeros(3, dtype=complex)
    step = 0.9 / np.linalg.eigvalsh(A[1:, 1:].real).max()
    for _ in range(rounds):
        normal = -((1 + laws.restitution) * before[0] + A[0, 1:] @ x[1:]) / A[0, 0]
        normal = x[0] + relaxed * ((normal if normal.real > 0 else 0j) - x[0])
        along = x[1:] - relaxed * step * (A[1:, 0] * normal + A[1:, 1:] @ x[1:] + before[1:])
        size, most = np.sqrt((along * along).sum()), laws.friction * normal
        old, x = x, np.concatenate([[normal], along * (most / size) if size.real > most.real else along])
        still = [
            np.abs(part(x - old)).max() <= share * np.abs(part(x)).max()
            for part, share in ((np.real, 2e-15), (np.imag, 1e-13))
        ]
        if all(still):
            return x
    return None
