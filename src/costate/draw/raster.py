"""Triangles to pixels, in NumPy: a depth buffer and the nearest face of each pixel.

All triangles are taken at once. Each contributes the pixels of its bounding box; three edge functions say which of them
are inside, and a minimum over equal pixels keeps the nearest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from costate.core.arrays import Array

CANDIDATES = 3_000_000
"""Number of pixels examined in one go, which bounds the memory."""


def rasterize(corners: Array, width: int, height: int) -> tuple[Array, NDArray[np.int32]]:
    """Return depth (height, width), inf where there is nothing, and index of the nearest face, -1 where there is none.

    corners: pixel x, pixel y and depth of each corner, linear on the screen, shape (faces, 3, 3). Pixel (0, 0) has its
    middle at (0.5, 0.5).
    """
    depth = np.full(width * height, np.inf, np.float32)
    face = np.full(width * height, -1, np.int32)
    corners = np.asarray(corners, np.float32)
    known = np.asarray(np.isfinite(corners).all(axis=(1, 2)))
    corners = np.where(known[:, None, None], corners, np.float32(-1))  # nowhere on the screen
    low = np.clip(np.floor(corners[:, :, :2].min(1) - 0.5), 0, (width, height)).astype(np.int32)
    high = np.clip(np.ceil(corners[:, :, :2].max(1) + 0.5), 0, (width, height)).astype(np.int32)
    size = np.maximum(high - low, 0)
    count = size[:, 0].astype(np.int64) * size[:, 1]
    seen = np.flatnonzero((count > 0) & known)
    for part in _parts(seen, count):
        _draw(part, corners, low, size, count, width, depth, face)
    return depth.reshape(height, width), face.reshape(height, width)


def _parts(faces: NDArray[np.intp], count: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Cut so that each part has about CANDIDATES pixels, or is one face."""
    if not len(faces):
        return []
    group = np.cumsum(count[faces]) // CANDIDATES
    return np.split(faces, np.flatnonzero(np.diff(group)) + 1)


def _draw(part, corners, low, size, count, width, depth, face) -> None:
    planes = _planes(corners[part])
    n = count[part]
    who = np.repeat(np.arange(len(part), dtype=np.int32), n)
    within = np.arange(n.sum(), dtype=np.int32) - np.repeat((np.cumsum(n) - n).astype(np.int32), n)
    columns = size[part, 0][who]
    row = within // columns
    x = low[part, 0][who] + (within - row * columns)
    y = low[part, 1][who] + row
    px, py = x.astype(np.float32) + np.float32(0.5), y.astype(np.float32) + np.float32(0.5)
    keep = np.ones(len(who), bool)
    for k in range(3):
        a, b, c = planes[k]
        keep &= a[who] * px + b[who] * py + c[who] >= 0
    who, px, py = who[keep], px[keep], py[keep]
    pixel = y[keep] * width + x[keep]
    a, b, c = planes[3]
    z = a[who] * px + b[who] * py + c[who]
    np.minimum.at(depth, pixel, z)
    nearest = z == depth[pixel]
    face[pixel[nearest]] = part[who[nearest]]


def _planes(corners: Array) -> list[tuple[Array, Array, Array]]:
    """Return coefficients (a, b, c) of a x + b y + c for the three edge functions, each 1 at its own corner and 0 on the
    opposite edge, and for the depth. Degenerate triangles are nowhere inside."""
    x, y, z = corners[..., 0].astype(float), corners[..., 1].astype(float), corners[..., 2].astype(float)
    area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
    flat = np.abs(area) < 1e-9
    inverse = 1 / np.where(flat, 1.0, area)
    found = []
    for j, k in ((1, 2), (2, 0), (0, 1)):
        a = (y[:, j] - y[:, k]) * inverse
        b = (x[:, k] - x[:, j]) * inverse
        c = (x[:, j] * y[:, k] - x[:, k] * y[:, j]) * inverse
        found.append((a, b, np.where(flat, -1e30, c)))
    depth = tuple(sum(f[m] * z[:, i] for i, f in enumerate(found)) for m in range(3))
    return [tuple(m.astype(np.float32) for m in f) for f in [*found, depth]]  # pyright: ignore


def barycentric(corners: Array, x: Array, y: Array) -> Array:
    """Return weights of the three corners at pixel positions inside their triangles, linear on the screen, shape (n, 3)."""
    planes = _planes(corners)
    return np.stack([a * x + b * y + c for a, b, c in planes[:3]], -1)
