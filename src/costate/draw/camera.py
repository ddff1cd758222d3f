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


MARGIN = 1.1
"""Width of a picture by that of what it shows."""


def framing(low: Array, high: Array, aspect: float, azimuth: float = -55.0, elevation: float = 20.0) -> Camera:
    """Return a camera that sees the whole of a box; arguments as in `framing_points`."""
    ends = np.stack([np.asarray(low, float), np.asarray(high, float)])
    corners = np.array([[ends[(k >> i) & 1][i] for i in range(3)] for k in range(8)])
    return framing_points(corners, aspect, azimuth, elevation)


def framing_points(points: Array, aspect: float, azimuth: float = -55.0, elevation: float = 20.0) -> Camera:
    """Return the nearest camera that sees all points (n, 3), but not from nearer than 10 cm.

    aspect: width / height of the picture. azimuth, elevation: from where it looks [degrees]; azimuth 0 is from +x, 90 from +y.

    In the axes of the camera, a point is seen if |u - u0| <= slope (w - w0): the largest difference of u - slope w, and the
    least one of u + slope w, say how far back the camera must be, and where.
    """
    a, e = np.radians([azimuth, elevation])
    back = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    camera = Camera(back, np.zeros(3))
    axes = camera.axes()
    u, v, w = (np.asarray(points, float) @ axes.T).T
    slope = np.tan(camera.fov / 2) / MARGIN
    sides = [((x - s * w).max(), (x + s * w).min(), s) for x, s in ((u, slope * aspect), (v, slope))]
    middle = [(first + last) / 2 for first, last, _ in sides]
    nearest = min(*((last - first) / (2 * s) for first, last, s in sides), (w.min() + w.max()) / 2 - 0.1)
    at = axes.T @ np.array([*middle, nearest])
    return Camera(at, at - back * ((w.min() + w.max()) / 2 - nearest), camera.fov)
