"""Arms with a tool for soft matter, and motions through given poses of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.model import Inertia, Joint, Link, Shape, Transform, load_model
from costate.robot import Robot

TOOL = "tool"
TOOL_MASS = 0.5
STEEL = (0.55, 0.57, 0.6, 1.0)
DOWN = np.diag([1.0, -1.0, -1.0])
"""Rotation of a flange that looks down."""


def arm_with(shapes: Sequence[Shape]) -> Robot:
    """Return a UR5 with a tool of some shapes, in the frame of its flange, whose z axis points away from the arm."""
    ur5 = load_model("ur5")
    drawn = tuple(replace(s, color=STEEL) for s in shapes)
    tool = Link(TOOL, Inertia(TOOL_MASS, np.array([0.0, 0.0, 0.05]), 1e-3 * np.eye(3)), drawn)
    mount = Joint("mount", "fixed", "tool0", TOOL, Transform(np.eye(3), np.zeros(3)))
    return Robot(replace(ur5, name="ur5_tool", links=(*ur5.links, tool), joints=(*ur5.joints, mount))).double()


def through(robot: Robot, link: str, places: np.ndarray, turns: np.ndarray, near: Sequence[float]) -> Tensor:
    """Return configurations (n, nq) in which a link is at places (n, 3) [m] with rotations (n, 3, 3), each near the one before."""
    found, q = [], torch.tensor(near, dtype=torch.float64)
    for p, R in zip(torch.as_tensor(places), torch.as_tensor(turns), strict=True):
        q = robot.inverse_kinematics(cs.Pose(p, R), link, q).detach()
        reached = robot.forward_kinematics(q, link)
        if not torch.allclose(reached.position, p, atol=1e-4) or not torch.allclose(reached.rotation, R, atol=1e-3):
            raise ValueError(
                f"'{link}' of '{robot.name}' cannot reach {p.tolist()} m with that rotation: choose another place"
            )
        found.append(q)
    return torch.stack(found)


def about_y(angle: float) -> np.ndarray:
    """Return the rotation by an angle [rad] about y."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
