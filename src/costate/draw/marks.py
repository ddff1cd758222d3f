"""Marks drawn into a scene: arrows and trails, as instances of unit meshes in the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from costate.core.arrays import Array, Color
from costate.model.rotation import aligning_z

CONTACT: Color = (0.95, 0.62, 0.10, 1.0)
TRAIL: Color = (0.20, 0.45, 0.85, 1.0)


@dataclass(frozen=True, eq=False)
class Mark:
    """A unit mesh in the world."""

    mesh: str
    """A key of `costate.collision.mesh.triangles.UNIT`."""
    pose: Array
    """Pose [R | p], shape (3, 4)."""
    scale: Array
    color: Color


def arrow(start: Array, vector: Array, color: Color, radius: float) -> list[Mark]:
    """Draw an arrow from a point along a vector; nothing for a vector that is shorter than its radius."""
    length = float(np.linalg.norm(vector))
    if length < radius:
        return []
    R = aligning_z(np.asarray(vector, float))
    head = min(6 * radius, 0.6 * length)
    shaft = length - head
    direction = np.asarray(vector, float) / length
    middle = np.asarray(start) + direction * shaft / 2
    return [
        Mark("cylinder", _pose(R, middle), np.array([radius, radius, shaft]), color),
        Mark(
            "cone", _pose(R, np.asarray(start) + direction * shaft), np.array([2.4 * radius, 2.4 * radius, head]), color
        ),
    ]


def trail(points: Array, color: Color, radius: float) -> list[Mark]:
    """Draw a tube along points (n, 3)."""
    marks = []
    for a, b in pairwise(points):
        length = float(np.linalg.norm(b - a))
        if length > 1e-6:
            scale = np.array([radius, radius, length])
            marks.append(Mark("tube", _pose(aligning_z(b - a), (a + b) / 2), scale, color))
            marks.append(Mark("sphere", _pose(np.eye(3), b), np.full(3, radius), color))
    return marks


def ramp(values: Sequence[float] | Array) -> Array:
    """Return colours from blue over white to red for values in [-1, 1], RGB in [0, 1], shape (..., 3)."""
    x = np.clip(np.asarray(values, float), -1, 1)[..., None]
    blue, white, red = np.array([0.16, 0.38, 0.78]), np.array([0.93, 0.93, 0.93]), np.array([0.80, 0.18, 0.16])
    return np.where(x < 0, white + (blue - white) * -x, white + (red - white) * x)


def _pose(R: Array, p: Array) -> Array:
    return np.concatenate([R, np.reshape(p, (3, 1))], 1)
