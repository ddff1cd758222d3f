"""Marks drawn into a scene: arrows, as instances of unit meshes in the world, and trails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array, Color
from costate.draw.triangles import Triangles
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


class Trails:
    """Tubes along paths, as long as they are at a moment."""

    SIDES, RINGS = 8, 200
    """Corners of a ring, and about the number of rings along a whole path."""

    def __init__(self, paths: Array, radius: float, color: Color = TRAIL):
        """Prepare tubes along paths (frames, paths, 3) [m]."""
        self.paths, self.radius, self.color = paths, radius, color
        self.every = max(1, len(paths) // self.RINGS)
        self._across = self._directions(paths[:: self.every])

    def _directions(self, points: Array) -> Array:
        """Return two directions across each path, at each ring, that turn with the path and do not twist, (rings, paths, 2, 3)."""
        way = np.gradient(points, axis=0) if len(points) > 1 else np.zeros_like(points)
        length = np.linalg.norm(way, axis=-1, keepdims=True)
        across = np.zeros((*points.shape[:2], 2, 3))
        u = np.broadcast_to([1.0, 0.0, 0.0], points.shape[1:]).copy()
        t = np.broadcast_to([0.0, 0.0, 1.0], points.shape[1:]).copy()
        for k in range(len(points)):
            t = np.where(length[k] > 1e-9, way[k] / np.maximum(length[k], 1e-9), t)
            u = u - (u * t).sum(-1, keepdims=True) * t
            lost = np.linalg.norm(u, axis=-1, keepdims=True) < 1e-3  # the path turned into its own side
            u = np.where(lost, np.cross(t, np.roll(t, 1, -1) + np.array([0.3, 0.1, 0.2])), u)
            u = u / np.linalg.norm(u, axis=-1, keepdims=True)
            across[k] = np.stack([u, np.cross(t, u)], -2)
        return across

    def at(self, frame: int) -> Triangles:
        """Return the tubes up to a frame."""
        rings = frame // self.every + 1
        middle = np.concatenate([self.paths[: frame + 1 : self.every], self.paths[frame : frame + 1]])
        across = np.concatenate([self._across[:rings], self._across[rings - 1 : rings]])
        turn = np.arange(self.SIDES) * 2 * np.pi / self.SIDES
        normals = np.einsum("sk,rpki->rpsi", np.stack([np.cos(turn), np.sin(turn)], -1), across)
        wide = np.ones(rings + 1)
        wide[[0, -1]] = 0.2
        points = middle[:, :, None] + self.radius * wide[:, None, None, None] * normals
        count, paths = len(middle), points.shape[1]
        r, p, s = np.meshgrid(np.arange(count - 1), np.arange(paths), np.arange(self.SIDES), indexing="ij")
        here = (r * paths + p) * self.SIDES
        a, b = here + s, here + (s + 1) % self.SIDES
        c, d = a + paths * self.SIDES, b + paths * self.SIDES
        faces = np.concatenate([np.stack(f, -1).reshape(-1, 3) for f in ((a, b, d), (a, d, c))])
        return Triangles(
            np.ascontiguousarray(points.reshape(-1, 3), np.float32),
            np.ascontiguousarray(normals.reshape(-1, 3), np.float32),
            faces.astype(np.int32),
            np.zeros(points.size // 3, np.int32),
            np.array([self.color], np.float32),
        )


def ramp(values: Sequence[float] | Array) -> Array:
    """Return colours from blue over white to red for values in [-1, 1], RGB in [0, 1], shape (..., 3)."""
    x = np.clip(np.asarray(values, float), -1, 1)[..., None]
    blue, white, red = np.array([0.16, 0.38, 0.78]), np.array([0.93, 0.93, 0.93]), np.array([0.80, 0.18, 0.16])
    return np.where(x < 0, white + (blue - white) * -x, white + (red - white) * x)


def _pose(R: Array, p: Array) -> Array:
    return np.concatenate([R, np.reshape(p, (3, 1))], 1)
