"""Kalman gains of the observer: how much of what is measured is believed, from step to step.

The joints are linear enough in commands: x' = F x + what commands add + process noise Q, z = H x + noise R, with x = joint
positions, joint velocities, payload and drifts, which are changes of the velocities in a step that the model does not foresee, and
z = measured positions and velocities. Gains follow beforehand, from noise alone:

    P = F P F^T + Q,  K = P H^T (H P H^T + R)^-1,  P = (1 - K H) P    (Kalman 1960)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from costate.tasks.insertion.guidance.steering import PLAIN
from costate.tasks.insertion.scene import BOTTLE_MASS

if TYPE_CHECKING:
    from costate.tasks.insertion.cell import InsertionOptions
    from costate.tasks.insertion.episode import Disturbances
    from costate.tasks.insertion.guidance.guide import Guide

SURPRISE = (2e-6, 5e-4, 3e-5)
"""Errors of the guide's prediction in a step, standard deviations: position [rad], velocity [rad/s], payload [kg]."""
DRIFT, WALK = 0.5, 0.05
"""Drifts at the start, and their changes in a step, standard deviations as parts of the errors of the model's fit."""
EXACT = (1e-6, 1e-4)
"""Least noise of measured positions [rad] and velocities [rad/s] that is reckoned with."""


def filter_gains(steps: int, F: np.ndarray, Q: np.ndarray, R: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Return gains (steps, n, m) for measurements of the first m of n numbers; P: covariance before the first of them."""
    n, m = len(F), len(R)
    H, gains = np.eye(m, n), []
    for _ in range(steps):
        gains.append(P @ H.T @ np.linalg.inv(H @ P @ H.T + R))
        P = (np.eye(n) - gains[-1] @ H) @ P
        P = F @ P @ F.T + Q
    return np.stack(gains)


def joint_gains(guide: Guide, options: InsertionOptions, against: Disturbances) -> np.ndarray:
    """Return gains (horizon + 1, 19, 12) for the state above, from measured positions and velocities."""
    answer = guide.changes[:6].double().numpy()  # of commands: movement, change of velocity
    moved, faster = answer[:, :6].T, answer[:, 6:].T
    F = np.eye(19)
    F[:6, 6:12] = options.dt * np.eye(6) - moved
    F[6:12, 6:12] -= faster
    F[:6, 13:], F[6:12, 13:] = guide.late * options.dt * np.eye(6), np.eye(6)
    if guide.weighs:
        F[:12, 12] = guide.changes[PLAIN].double().numpy()
    rounding = against.encoder / 12**0.5
    noise = np.hypot(against.joint_noise, rounding), against.velocity_noise
    R = np.diag(np.repeat(np.square(np.maximum(noise, EXACT)), 6))
    Q = np.diag(np.square([*np.repeat(SURPRISE, (6, 6, 1)), *WALK * guide.missed]))
    heavier = BOTTLE_MASS * against.payload / 3**0.5
    # Anywhere, and at rest.
    P = np.diag(np.square([*np.repeat((1.0, SURPRISE[1], heavier), (6, 6, 1)), *DRIFT * guide.missed]))
    return filter_gains(options.horizon + 1, F, Q, R, P)
