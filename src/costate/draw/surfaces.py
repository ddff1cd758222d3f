"""Surfaces that change their shape, such as cloth: points that move, and triangles between them, seen from both sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array, Color
from costate.draw.triangles import Triangles

BACK = 0.75
"""Factor of the colour of the other side."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface, frame by frame."""

    name: str
    faces: Array
    """Points of the triangles (m, 3)."""
    points: Array
    """Places in every frame (frames, n, 3) [m]."""
    color: Color

    def at(self, frame: int) -> list[Triangles]:
        """Return both sides in a frame."""
        points = np.ascontiguousarray(self.points[frame], np.float32)
        normals = normals_of(points, self.faces)
        return [
            Triangles(
                points,
                np.ascontiguousarray(sign * normals, np.float32),
                np.ascontiguousarray(self.faces[:, ::sign], np.int32),
                np.zeros(len(points), np.int32),
                np.array([[*(share * c for c in self.color[:3]), self.color[3]]], np.float32),
            )
            for sign, share in ((1, 1.0), (-1, BACK))
        ]


def normals_of(points: Array, triangles: Array) -> Array:
    """Return unit normals at the vertices: means of those of the triangles around, by area."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    each = np.cross(b - a, c - a)
    total = np.zeros_like(points)
    for k in range(3):
        np.add.at(total, triangles[:, k], each)
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-20)
