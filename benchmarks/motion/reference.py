"""Derivatives of the true motion: the reference by complex steps, and a check that they hold for disturbances of a finite size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.motion.bodies import Arm, Array, Ball, Floating, Part
from benchmarks.motion.events import MOVES, Laws, Motion, UnresolvedError, move
from benchmarks.motion.places import of_start
from benchmarks.motion.scenes import Kind, Start

LEVER = 0.1
"""Length by which angles and angular velocities are multiplied, so that they compare with positions and velocities [m]."""
DISTURBANCE = 1e-4
"""Size of the differences by which a derivative is checked: a hundredth of a millimetre in a position that moves 0.1 per unit."""
SETTLED = 0.02
"""Largest relative difference between the derivative and these differences."""


@dataclass(frozen=True)
class Truth:
    """The end of a motion and its derivative, as vectors of lengths and speeds."""

    value: Array
    slope: Array
    impacts: int


def ends(part: Part, x: Array) -> Array:
    """Return what is compared of a part's state: positions and velocities, angles and angular velocities times LEVER."""
    if isinstance(part, Arm):
        angles, rates = np.split(x, 2)
        relative = [np.concatenate([y[:1], np.diff(y)]) for y in (angles, rates)]
        return LEVER * np.concatenate(relative)
    if isinstance(part, Ball):
        return np.concatenate([x[:3], x[3:6], LEVER * x[6:]])
    R = x[3:12].reshape(3, 3)
    return np.concatenate([x[:3], LEVER * R[:, 0], LEVER * R[:, 1], x[12:15], LEVER * x[15:]])


def follow(kind: Kind, start: Start, by: Start, t: float | complex) -> tuple[Array, Motion]:
    """Return the end of the motion from a start at a distance t along a direction."""
    parts = kind.system.parts
    if any(isinstance(part, Floating) for part in parts):
        raise UnresolvedError("a robot")
    states = [np.asarray(of_start(p, a, b, t)) for p, a, b in zip(parts, start.places, by.places, strict=True)]
    laws = Laws(start.restitution + t * by.restitution, start.friction + t * by.friction, start.gravity)
    motion = move(kind.system, states, laws, kind.seconds)
    return np.concatenate([ends(p, x) for p, x in zip(parts, motion.states, strict=True)]), motion


def truth(kind: Kind, start: Start, by: Start) -> Truth:
    """Return the derivative of a motion. Raises UnresolvedError where the motion, or a disturbed one, cannot be followed, or where
    differences do not settle at the derivative: disturbances of a hundredth of a millimetre then change the course of events."""
    end, motion = follow(kind, start, by, 1j * MOVES)
    slope = end.imag / MOVES
    sizes = [
        (follow(kind, start, by, h)[0] - follow(kind, start, by, -h)[0]) / (2 * h)
        for h in (DISTURBANCE, DISTURBANCE / 2)
    ]
    plain = (4 * sizes[1] - sizes[0]) / 3
    if np.abs(plain - slope).max() > SETTLED * np.abs(slope).max():
        raise UnresolvedError("differences do not settle")
    return Truth(end.real, slope, len(motion.times))
