"""Triangles in the world, of which a picture is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costate.collision.mesh.triangles import Mesh
from costate.core.arrays import Array
from costate.draw.compiled.corners import place


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles, each of which belongs to an owner: a coloured body that moves as a whole."""

    points: Array
    """Corners [m], float32, shape (points, 3)."""
    normals: Array
    """Normals at the corners, float32, shape (points, 3)."""
    faces: Array
    """Numbers of the three corners of each triangle, counter-clockwise seen from outside, int32, shape (faces, 3)."""
    owner: Array
    """Number of the owner of each corner, int32, shape (points,)."""
    colors: Array
    """Colour (sRGB and opacity) of each owner, float32, shape (owners, 4)."""

    @property
    def corners(self) -> Array:
        """Corners of each triangle [m], shape (faces, 3, 3)."""
        return self.points[self.faces]

    def moved(self, poses: Array) -> Triangles:
        """Move each owner to a pose [R | p], shape (owners, 3, 4)."""
        points, turned = np.empty_like(self.points), np.empty_like(self.normals)
        place(
            vertices=self.points,
            normals=self.normals,
            owner=self.owner,
            poses=np.ascontiguousarray(poses, np.float64),
            count=len(self.points),
            points=points,
            turned=turned,
        )
        return replace(self, points=points, normals=turned)


def triangles_of(mesh: Mesh, scale: Any, color: Any) -> Triangles:
    """Return a mesh, scaled along its axes, as one owner."""
    scale = np.broadcast_to(np.asarray(scale, np.float32), 3)
    normals = mesh.normals / np.where(scale == 0, 1, scale)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-20)
    faces = mesh.faces if np.prod(scale) >= 0 else mesh.faces[:, ::-1]  # a mirror turns them inside out
    return Triangles(
        np.ascontiguousarray(mesh.vertices * scale, np.float32),
        np.ascontiguousarray(normals, np.float32),
        np.ascontiguousarray(faces, np.int32),
        np.zeros(len(mesh.vertices), np.int32),
        np.asarray(color, np.float32).reshape(1, 4),
    )


def joined(parts: Sequence[Triangles]) -> Triangles:
    """Return several sets of triangles as one; their owners follow each other."""
    if len(parts) == 1:
        return parts[0]
    corner = np.cumsum([0, *(len(t.points) for t in parts)])
    owner = np.cumsum([0, *(len(t.colors) for t in parts)])
    none, nobody = np.zeros((0, 3), np.float32), np.zeros((0, 4), np.float32)
    return Triangles(
        np.concatenate([none, *(t.points for t in parts)]),
        np.concatenate([none, *(t.normals for t in parts)]),
        np.concatenate([none.astype(np.int32), *(t.faces + np.int32(k) for t, k in zip(parts, corner, strict=False))]),
        np.concatenate(
            [none[:, 0].astype(np.int32), *(t.owner + np.int32(k) for t, k in zip(parts, owner, strict=False))]
        ),
        np.concatenate([nobody, *(t.colors for t in parts)]),
    )
