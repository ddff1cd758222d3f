"""Motions of an arm through places of its tool, and small changes of these places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.model import Shape
from costate.robot import Robot
from costate.tasks.cloth.knots import smooth
from costate.tasks.soft.robots.arm import DOWN, TOOL, through

NEAR = (0.0, -1.2, 2.0, -2.3, -1.57, -1.57)
"""Configuration of a UR5 whose flange looks down in front of it [rad]."""

CLAMP = 0.1
"""Distance of the edge that a clamp holds from the flange [m]."""


def clamp(wide: float) -> Shape:
    """Return a clamp on a flange, as wide as the edge that it holds [m]."""
    return cs.shapes.box((0.02, wide, CLAMP), (0.0, 0.0, CLAMP / 2))


@dataclass(frozen=True, eq=False)
class ToolPath:
    """Targets of the joints, with which a tool goes through places that may be changed a little."""

    q: Tensor
    """Configurations at the knots (k, nq)."""
    per_metre: Tensor
    """Change of the configuration by the place of the tool, at each knot (k, nq, 3) [rad/m]."""

    def joints(self, moved: Tensor) -> Tensor:
        """Return configurations (k, nq) with the tool moved by (k, 3) [m] at the knots, to first order, not turned."""
        return self.q + (self.per_metre @ moved[..., None])[..., 0]

    def targets(self, moved: Tensor, steps: int, still: int) -> Tensor:
        """Return targets (steps + still, nq): along smooth curves, then still."""
        q = self.joints(moved)
        return torch.cat([smooth(q, steps), q[-1:].expand(still, -1)])


def tool_path(robot: Robot, places: np.ndarray, near: Sequence[float] = NEAR, turn: np.ndarray = DOWN) -> ToolPath:
    """Return the motion of a tool through places (k, 3) [m] of its origin, with one rotation (3, 3)."""
    q = through(robot, TOOL, places, np.tile(turn, (len(places), 1, 1)), near)
    return ToolPath(q, torch.linalg.pinv(robot.jacobian(q, TOOL).detach())[..., :3])
