"""Shadows: the scene seen from the sun."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array
from costate.draw.camera import Camera
from costate.draw.compiled.shadows import bounds, cast, mean, outline
from costate.draw.raster import Buffers
from costate.draw.triangles import Triangles

SUN = np.array([0.35, -0.45, 0.82]) / np.linalg.norm([0.35, -0.45, 0.82])
"""Towards the sun."""
BLUR = 0.006
"""Half-width of the edge of a shadow on the ground, as a part of the shadow map's width."""
BIAS = 2.5
"""Depth by which a point must lie behind what shades it [pixels of the map]."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """Depth of the scene seen from the sun, and its smoothed outline for the ground."""

    depth: Array
    """Depth [m], square, float32."""
    outline: Array
    """Darkness of the ground, in [0, 1], half as large in each direction."""
    to_map: Array
    """Transform from a point to pixel x, pixel y and depth of the map, [A | b], shape (3, 4)."""
    scale: float
    """Pixels per metre."""

    @property
    def sun(self) -> Array:
        """Numbers that the light of a picture is computed from: `to_map`, the direction of the sun, and the bias."""
        return np.concatenate([self.to_map.ravel(), SUN, [BIAS / self.scale]]).astype(np.float32)


def shadow_map(soup: Triangles, ground: float | None, pixels: int) -> Shadow:
    """Look at triangles from the sun. pixels: width of the map; even."""
    axes = np.ascontiguousarray(Camera(SUN, np.zeros(3)).axes())
    alpha, count = np.ascontiguousarray(soup.colors[:, 3]), len(soup.points)
    same = {"points": soup.points, "owner": soup.owner, "alpha": alpha, "count": count}
    ends = np.empty((2, 3))
    bounds(**same, axes=axes, ground=-np.inf if ground is None else ground, ends=ends)
    low, high = ends if np.isfinite(ends).all() else np.zeros((2, 3))
    reach = max(float((high - low)[:2].max()) * 0.56, 0.05)
    scale = pixels / (2 * reach)
    grow = np.array([scale, scale, 1.0])
    shift = np.array([pixels / 2, pixels / 2, 0.0]) - grow * np.append((low + high)[:2] / 2, 0.0)
    to_map = np.concatenate([grow[:, None] * axes, shift[:, None]], 1)
    local = np.empty_like(soup.points)
    cast(**same, to_map=to_map, local=local)
    found = Buffers(pixels, pixels)
    found.draw(local, soup.faces, soup.owner, np.ones(len(alpha), np.float32), two_sided=True)
    return Shadow(found.depth, _smooth_outline(found.depth), to_map, scale)


def _smooth_outline(depth: Array) -> Array:
    """Smooth the outline by three passes of a running mean in each direction, which is nearly a Gaussian."""
    half = len(depth) // 2
    image, other = np.empty((half, half), np.float32), np.empty((half, half), np.float32)
    outline(depth=depth, half=half, covered=image)
    reach = max(1, round(BLUR * half))
    for line, step in ((half, 1), (1, half)):
        for _ in range(3):
            mean(image=image, lines=half, length=half, line=line, step=step, reach=reach, smooth=other)
            image, other = other, image
    return image
