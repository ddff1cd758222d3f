"""Cameras: where a picture is taken from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from costate.core.arrays import Array


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera that looks at a point, with z up."""

    position: Array = field(default_factory=lambda: np.array([1.6, -2.0, 1.2]))
    """Position [m], shape (3,)."""
    target: Array = field(default_factory=lambda: np.array([0.0, 0.0, 0.4]))
    """Point it looks at [m], shape (3,)."""
    fov: float = np.radians(35.0)
    """Vertical field of view [rad]."""

    def axes(self) -> Array:
        """Return the directions right, up and forward as rows, shape (3, 3)."""
        forward = np.asarray(self.target, float) - np.asarray(self.position, float)
        forward /= np.linalg.norm(forward)
        up = np.array([0.0, 0.0, 1.0]) if abs(forward[2]) < 0.999 else np.array([0.0, 1.0, 0.0])
        right = np.cross(forward, up)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(right, forward), forward])

    def project(self, points: Array, width: int, height: int) -> Array:
        """Return pixel x, pixel y (down) and distance along the view [m] of points (..., 3)."""
        local = (points - np.asarray(self.position)) @ self.axes().T
        focal = height / 2 / np.tan(self.fov / 2)
        depth = local[..., 2]
        safe = np.where(depth > 1e-6, depth, 1e-6)
        x = width / 2 + focal * local[..., 0] / safe
        y = height / 2 - focal * local[..., 1] / safe
        return np.stack([x, y, depth], -1)

    def rays(self, width: int, height: int) -> Array:
        """Return the direction through the middle of each pixel, of length 1 along the view, shape (height, width, 3)."""
        focal = height / 2 / np.tan(self.fov / 2)
        x = (np.arange(width, dtype=np.float32) + 0.5 - width / 2) / focal
        y = (height / 2 - np.arange(height, dtype=np.float32) - 0.5) / focal
        right, up, forward = self.axes().astype(np.float32)
        return x[None, :, None] * right + y[:, None, None] * up + forward


def framing(low: Array, high: Array, aspect: float, azimuth: float = -55.0, elevation: float = 20.0) -> Camera:
    """Return a camera that sees the whole of a box.

    aspect: width / height of the picture. azimuth, elevation: from where it looks [degrees]; azimuth 0 is from +x, 90 from +y.
    """
    a, e = np.radians([azimuth, elevation])
    back = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    low, high = np.asarray(low, float), np.asarray(high, float)
    middle = (low + high) / 2
    corners = np.array([[low, high][(k >> i) & 1][i] for k in range(8) for i in range(3)]).reshape(8, 3)
    camera = Camera(middle + back, middle)
    right, up, forward = camera.axes()
    slope = np.tan(camera.fov / 2) / 1.1  # a margin around the box
    d = corners - middle
    # A corner is inside when its sideways and upward offsets stay below slope * (distance + its own depth).
    need_up = np.abs(d @ up) / slope - d @ forward
    need_right = np.abs(d @ right) / (slope * aspect) - d @ forward
    distance = max(need_up.max(), need_right.max(), 0.1)
    return Camera(middle + back * distance, middle, camera.fov)
