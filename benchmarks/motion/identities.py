"""Laws that derivatives must obey whatever the motion is: energy and momentum of the end change as those of the start do.

Both are analytic functions of the ends of a motion, so a complex step along a slope gives their derivative.
"""

from __future__ import annotations

import numpy as np

from benchmarks.motion.bodies import Arm, Array, Ball, Free, Part
from benchmarks.motion.events import MOVES
from benchmarks.motion.places import of_start
from benchmarks.motion.reference import LEVER, ends
from benchmarks.motion.scenes import Kind, Start


def energy(kind: Kind, at: Array, gravity: Array) -> complex:
    """Return the energy of the ends of a motion [J]."""
    return sum((_energy(part, x, gravity) for part, x in _split(kind, at)), 0j)


def momentum(kind: Kind, at: Array) -> Array:
    """Return linear momentum [kg m/s] and angular momentum about the origin [kg m^2/s] of balls and free bodies, (6,)."""
    return sum((_momentum(part, x) for part, x in _split(kind, at)), np.zeros(6))


def errors(kind: Kind, start: Start, by: Start, value: Array, slope: Array) -> dict[str, float]:
    """Return by how much the derivatives of energy and momentum differ at the start and at the end, relative to their size.

    Energy is kept by elastic impacts without friction. Momentum is kept where there is no ground, and no gravity.
    """
    begin = at_start(kind, start, by)
    end, found = value + 1j * MOVES * slope, {}
    if start.restitution == 1 and start.friction == 0:
        both = [energy(kind, at, start.gravity) for at in (begin, end)]
        found["energy"] = _apart(*(np.array([e.imag / MOVES]) for e in both), size=abs(both[0].real))
    if kind.ground is None and not kind.walls and not start.gravity.any():
        both = [momentum(kind, at) for at in (begin, end)]
        found["momentum"] = _apart(*(np.imag(m) / MOVES for m in both))
    return found


def at_start(kind: Kind, start: Start, by: Start) -> Array:
    """Return the ends of a motion without duration, a complex step along a direction."""
    parts = kind.system.parts
    first = [of_start(p, a, b, 1j * MOVES) for p, a, b in zip(parts, start.places, by.places, strict=True)]
    return np.concatenate([ends(p, x) for p, x in zip(parts, first, strict=True)])


def _apart(a: Array, b: Array, size: float = 0.0) -> float:
    return float(np.abs(a - b).max() / max(np.abs(a).max(), size))


def _split(kind: Kind, at: Array) -> list[tuple[Part, Array]]:
    found, k = [], 0
    for part in kind.system.parts:
        size = part.size if isinstance(part, Arm) else 9 if isinstance(part, Ball) else 15
        found.append((part, at[k : k + size]))
        k += size
    return found


def _inertia(part: Ball | Free, x: Array) -> Array:
    """Return the inertia in world axes."""
    if isinstance(part, Ball):
        return 0.4 * part.mass * part.radius**2 * np.eye(3)
    a, b = x[3:6] / LEVER, x[6:9] / LEVER
    R = np.stack([a, b, np.cross(a, b)], -1)
    return R @ np.diag(part.inertia) @ R.T


def _energy(part: Part, x: Array, gravity: Array) -> complex:
    if isinstance(part, Arm):
        angles, rates = (np.cumsum(y) / LEVER for y in np.split(x, 2))
        A, first = part._coefficients()
        return rates @ (A * np.cos(angles[:, None] - angles)) @ rates / 2 + gravity[2] * first @ np.cos(angles)
    assert isinstance(part, Ball | Free)
    p, v, w = x[:3], x[-6:-3], x[-3:] / LEVER
    return part.mass * (v @ v / 2 - gravity @ p) + w @ _inertia(part, x) @ w / 2


def _momentum(part: Part, x: Array) -> Array:
    assert isinstance(part, Ball | Free)
    p, v, w = x[:3], x[-6:-3], x[-3:] / LEVER
    return np.concatenate([part.mass * v, part.mass * np.cross(p, v) + _inertia(part, x) @ w])
