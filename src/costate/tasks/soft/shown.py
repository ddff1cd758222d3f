"""Points on what pushes particles, which are shown with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from costate.collision.shapes import Solid
from costate.continuum.mpm.fill import distances
from costate.continuum.mpm.robots import Pusher, Tool
from costate.continuum.mpm.walls import Obstacle
from costate.model.shape import Shape

REACH = 0.3
"""Half the edge of the cube around a shape's origin in which its surface is shown [m]."""


def surface(shape: Shape | Solid, spacing: float) -> np.ndarray:
    """Return the points (n, 3) of a lattice that are near the surface of a shape."""
    middle = np.asarray(shape.pose.translation if isinstance(shape, Shape) else getattr(shape, "base", (0.0, 0.0, 0.0)))
    axis = np.arange(-REACH, REACH, spacing)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3) + middle
    return points[np.abs(distances(shape, points)[0]) < 0.5 * spacing]


def moved_surfaces(tools: Sequence[Tool | Pusher], rows: Tensor, fixed: Sequence[Obstacle], spacing: float) -> Tensor:
    """Return points (frames, n, 3) on tools at rows (frames, tools, 12 or more), position and rotation, and on obstacles."""
    found = []
    for k, tool in enumerate(tools):
        points = torch.as_tensor(surface(tool.shape, spacing), dtype=rows.dtype)
        R = rows[:, k, 3:12].unflatten(-1, (3, 3))
        found.append(rows[:, None, k, :3] + points @ R.mT)
    for wall in fixed:
        points = torch.as_tensor(surface(wall.shape, spacing), dtype=rows.dtype)
        points = points[points[:, 2] > -spacing]  # what is below the floor is not seen
        found.append(points.expand(len(rows), *points.shape))
    return torch.cat(found, -2)
