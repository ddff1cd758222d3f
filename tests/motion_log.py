"""A log of a robot's motion, as `costate identify` reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

import costate as cs


def log_of_a_motion(path: Path) -> None:
    """Write times, positions and torques of a UR5 that sways."""
    robot = cs.load_robot("ur5")
    t = np.arange(0, 10, 0.02)
    rates = np.array([0.7, 0.9, 1.1, 1.3, 1.7, 1.9])
    q, v, a = np.sin(t[:, None] * rates), rates * np.cos(t[:, None] * rates), -(rates**2) * np.sin(t[:, None] * rates)
    tau = robot.inverse_dynamics(torch.as_tensor(q), torch.as_tensor(v), torch.as_tensor(a)).numpy()
    names = ["t", *(f"q_{j}" for j in robot.joint_names), *(f"tau_{j}" for j in robot.joint_names)]
    np.savetxt(path, np.column_stack([t, q, tau]), delimiter=",", header=",".join(names), comments="")
