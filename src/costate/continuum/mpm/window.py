"""Windows: the part of the grid around the particles, which is all that a segment computes. It changes no bit of the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.step import MpmStep

SLACK = 2.0
"""Cells that particles may move further than their speed says."""
ENOUGH = 2.0
"""Nodes of a window over those needed, up to which a kernel is used again."""
ROUND = 8
"""Windows have multiples of this many nodes along each axis, so that few kernels are needed."""


@dataclass(frozen=True)
class Window:
    """A part of a grid."""

    origin: tuple[int, ...]
    """First node along each axis."""
    shape: tuple[int, ...]
    """Number of nodes along each axis."""

    def cut(self, numbers: np.ndarray, grid: MpmGrid) -> np.ndarray:
        """Return the rows of the window from those of all nodes (count, n)."""
        places = tuple(slice(o, o + n) for o, n in zip(self.origin, self.shape, strict=True))
        return np.ascontiguousarray(numbers.reshape(*grid.shape, -1)[places]).reshape(-1, numbers.shape[1])


def whole(grid: MpmGrid) -> Window:
    """Return the window that is all of the grid."""
    return Window((0,) * grid.dim, grid.shape)


def reused(window: Window, shapes: Iterable[tuple[int, ...]], grid: MpmGrid) -> Window:
    """Return a window of one of the given shapes that holds this one, if it is not much larger: its kernel is there already."""
    fits = [s for s in shapes if all(a >= b for a, b in zip(s, window.shape, strict=True))]
    fits = [s for s in fits if np.prod(s) <= ENOUGH * np.prod(window.shape)]
    if not fits:
        return window
    shape = min(fits, key=lambda s: int(np.prod(s)))
    spare = (np.array(shape) - window.shape) // 2
    origin = np.clip(np.array(window.origin) - spare, 0, np.array(grid.shape) - shape)
    return Window(tuple(origin.tolist()), shape)


def around(step: MpmStep, x: Tensor, v: Tensor, substeps: int) -> Window:
    """Return a window that particles at x with velocities v (..., particles, dim) will probably not leave in some substeps."""
    grid, spline = step.grid, step.spline
    X = (x.double().reshape(-1, grid.dim).numpy() - np.array(grid.lower)) / grid.dx
    way = substeps * step.h / grid.dx * v.double().reshape(-1, grid.dim).numpy()
    low = np.minimum(X, X + way).min(0) - SLACK - spline.shift
    high = np.maximum(X, X + way).max(0) + SLACK - spline.shift + spline.nodes
    if not np.isfinite(low).all() or not np.isfinite(high).all():
        return whole(grid)
    first = np.floor(low).astype(int)
    size = ROUND * -(-(np.ceil(high).astype(int) + 1 - first) // ROUND)
    shape = np.minimum(size, grid.shape)
    origin = np.clip(first, 0, np.array(grid.shape) - shape)
    return Window(tuple(origin.tolist()), tuple(shape.tolist()))
