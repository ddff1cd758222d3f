"""Triangles in the world, of which a picture is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.collision.mesh.triangles import Mesh
from costate.core.arrays import Array


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles that do not know each other."""

    corners: Array
    """Corners in the world [m], shape (faces, 3, 3)."""
    normals: Array
    """Normals per corner, shape (faces, 3, 3)."""
    colors: Array
    """Colour (RGBA) per face, shape (faces, 4)."""


def placed(mesh: Mesh, pose: Array, scale: Array, color: Any) -> Triangles:
    """Scale a mesh along its axes and move it to a pose [R | p]."""
    R, p = pose[:, :3], pose[:, 3]
    normals = mesh.normals / scale @ R.T
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    corners = mesh.vertices * scale @ R.T + p
    colors = np.broadcast_to(np.asarray(color, float), (len(mesh.faces), 4))
    return Triangles(corners[mesh.faces], normals[mesh.faces], colors)


def joined(parts: Sequence[Triangles]) -> Triangles:
    none = np.zeros((0, 3, 3))
    return Triangles(
        np.concatenate([none, *(t.corners for t in parts)]),
        np.concatenate([none, *(t.normals for t in parts)]),
        np.concatenate([np.zeros((0, 4)), *(t.colors for t in parts)]),
    )
