"""States of the reference at a place: position, rotation vector, velocity and angular velocity, or angles and rates of an arm."""

from __future__ import annotations

import numpy as np

from benchmarks.motion.bodies import Arm, Array, Ball, Part, skew


def of_start(part: Part, place: Array, by: Array | None = None, t: float | complex = 0.0) -> Array:
    """Return the reference's state of a part. by, t: a direction, and how far to go along it."""
    if isinstance(part, Arm):
        return np.concatenate(np.cumsum(place if by is None else place + t * by, axis=1))
    moved = place if by is None else place + t * by
    if isinstance(part, Ball):
        return np.concatenate([moved[0], moved[2], moved[3]])
    R = rotation(place[1])
    turn = np.eye(3) if by is None else _turn(t * by[1])
    return np.concatenate([moved[0], (turn @ R).ravel(), moved[2], moved[3]])


def rotation(vector: Array) -> Array:
    """Return the rotation about a vector by its length."""
    angle = float(np.linalg.norm(vector))
    K = skew(vector / angle) if angle else np.zeros((3, 3))
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def _turn(vector: Array) -> Array:
    if np.iscomplexobj(vector):
        return np.eye(3) + skew(vector)  # of the size of a complex step
    return rotation(vector)
