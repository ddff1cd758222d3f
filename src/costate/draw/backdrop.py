"""The backdrop of a picture, in the colours of its theme: a sky, and a ground with a grid that fades into it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array
from costate.draw.camera import Camera
from costate.draw.color import linear


@dataclass(frozen=True)
class Theme:
    """Colours of a picture, sRGB in [0, 1]."""

    sky: tuple[float, float, float]
    """Colour at the top of the picture."""
    horizon: tuple[float, float, float]
    ground: tuple[float, float, float]
    line: tuple[float, float, float]
    """Colour of the grid."""
    shadow: float = 0.55
    """Brightness of the ground in full shadow: 0 black, 1 as in the light."""


THEMES: dict[str, Theme] = {
    "light": Theme((0.80, 0.86, 0.93), (0.96, 0.97, 0.98), (0.90, 0.91, 0.92), (0.72, 0.75, 0.79)),
    "dark": Theme((0.07, 0.09, 0.12), (0.13, 0.15, 0.18), (0.16, 0.18, 0.21), (0.28, 0.32, 0.37), 0.45),
}


@dataclass(frozen=True, eq=False)
class Backdrop:
    """A picture without bodies, as `behind + floor * light` with the light of the sun on the ground, in [0, 1].

    One sample per pixel is enough: the grid smooths its own lines, and shadows are soft.
    """

    behind: Array
    """Sky and fog, linear RGB, float32, shape (height, width, 3)."""
    floor: Array
    """Ground in full light, linear RGB, float32, shape (height, width, 3)."""
    place: Array
    """Point of the ground under each pixel, x and y [m], not a number where there is none, shape (height, width, 2)."""


def backdrop(camera: Camera, size: tuple[int, int], ground: float | None, theme: Theme) -> Backdrop:
    """Return what is behind the bodies of a picture of a size (width, height)."""
    rays = camera.rays(*size)
    height, width = rays.shape[:2]
    up = np.linspace(1, 0, height, dtype=np.float32)[:, None, None]
    behind = np.broadcast_to(linear(theme.horizon) * (1 - up) + linear(theme.sky) * up, (height, width, 3)).copy()
    floor, place = np.zeros_like(behind), np.full((height, width, 2), np.nan, np.float32)
    if ground is None or camera.position[2] <= ground:
        return Backdrop(behind, floor, place)
    down = rays[..., 2] < -1e-3
    ray = rays[down]
    reach = np.float32(ground - camera.position[2]) / ray[:, 2]
    points = np.asarray(camera.position, np.float32) + reach[:, None] * ray
    far = float(np.linalg.norm(camera.position - camera.target))
    fog = np.exp(-((reach / np.float32(3.5 * far)) ** 2))[:, None]
    pixel = reach * np.float32(2 * np.tan(camera.fov / 2) / height)
    line = _grid(points, pixel, ray, far)[:, None]
    floor[down] = fog * (linear(theme.ground) * (1 - line) + linear(theme.line) * line)
    behind[down] *= 1 - fog
    place[down] = points[:, :2]
    return Backdrop(behind, floor, place)


def _grid(points: Array, pixel: Array, ray: Array, far: float) -> Array:
    """Return how much of a pixel is covered by a line; there is one every step, and fainter ones between.

    pixel: its width where its ray meets the ground [m]. far: distance of the camera from what it looks at [m].
    """
    step = np.float32(10.0 ** np.floor(np.log10(far * 0.6)))
    slant = np.abs(ray[:, 2]) / np.linalg.norm(ray, axis=1)
    thickness = np.float32(0.0009 * far)
    width = np.maximum(thickness, np.float32(0.6) * pixel / np.maximum(slant, np.float32(0.05)))
    covered = np.zeros(len(points), np.float32)
    for spacing, strength in ((step, np.float32(0.9)), (step / 5, np.float32(0.25))):
        thin = strength * np.minimum(1, 2 * thickness / width) * np.clip(np.float32(1.5) - 4 * width / spacing, 0, 1)
        for axis in (0, 1):
            turn = points[:, axis] / spacing
            off = np.abs(turn - np.round(turn)) * spacing
            np.maximum(covered, np.clip(np.float32(1.2) - off / width, 0, 1) * thin, out=covered)
    return covered
