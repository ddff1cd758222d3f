"""Cloth and ropes as triangles: both sides of cloth, ropes as thin prisms."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.continuum.cloth.body import Cloth
from costate.continuum.cloth.model import ClothModel
from costate.core.arrays import Array

COLORS = ((0.25, 0.45, 0.70, 1.0), (0.80, 0.45, 0.25, 1.0), (0.35, 0.60, 0.40, 1.0), (0.60, 0.40, 0.62, 1.0))
"""Colours of the bodies, in turn."""
SIDES = 6
"""Sides of a rope."""
ROPE = 0.004
"""Radius of a rope in pictures [m]."""


def frames_of(x: Any) -> Array:
    """Return positions of one motion as an array (frames, points, 3), or raise what they are instead."""
    found = np.asarray(x.detach().numpy() if hasattr(x, "detach") else x, float)
    if found.ndim != 3 or found.shape[-1] != 3:
        raise ValueError(f"positions have the shape {found.shape}; expected (frames, points, 3): those of one motion")
    return found


def surface(model: ClothModel, x: Array) -> list[tuple[Array, Array]]:
    """Return vertices (n, 3) and triangles (m, 3) of every body at positions x (points, 3)."""
    found = []
    for k, body in enumerate(model.bodies):
        points = x[model.scene.slice_of(k)]
        found.append((points, body.triangles) if isinstance(body, Cloth) else _tube(points))
    return found


def _tube(points: Array) -> tuple[Array, Array]:
    """Return a prism along a chain of points."""
    along = np.gradient(points, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-20)
    side = np.empty_like(points)
    last = np.cross(along[0], np.eye(3)[np.abs(along[0]).argmin()])
    for k, e in enumerate(along):  # as little turned from point to point as may be
        last = last - (last @ e) * e
        side[k] = last = last / max(np.linalg.norm(last), 1e-20)
    other = np.cross(along, side)
    t = 2 * np.pi * np.arange(SIDES) / SIDES
    ring = np.cos(t)[None, :, None] * side[:, None] + np.sin(t)[None, :, None] * other[:, None]
    vertices = (points[:, None] + ROPE * ring).reshape(-1, 3)
    i = np.arange(len(points) - 1)[:, None] * SIDES
    j, k = np.arange(SIDES)[None], (np.arange(SIDES)[None] + 1) % SIDES
    quads = np.stack([i + j, i + k, i + SIDES + k, i + SIDES + j], -1).reshape(-1, 4)
    return vertices, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
