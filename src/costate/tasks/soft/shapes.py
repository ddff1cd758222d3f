"""Shapes of soft robots that move: their particles, muscles, and the fibres along which muscles pull."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from costate.continuum.mpm import fill

Made = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Particles (n, dim) [m], muscle of each (n), -1 for none, and unit vectors of the fibres: one (dim), or one each (n, dim)."""
LEGS_2D = ((0.0, 0), (0.05, 1), (0.2, 2), (0.25, 3))
"""Left edges [m] of the columns of legs, 0.05 m by 0.1 m, and their muscles."""


@dataclass(frozen=True)
class Robot:
    """A row of the table of robots."""

    make: Callable[[float], Made]
    """Function of the distance of particles [m]."""
    room: tuple[float, ...]
    """Lengths of the grid [m]."""
    strength: float
    """Strength of the muscles [Pa]."""
    friction: float = 0.5


def walker(spacing: float) -> Made:
    """Return a bar on two legs of two columns each."""
    low = max(0.03, 4 * spacing)  # the floor ends at the third node
    parts = [(fill.box((0.1, low + 0.1), (0.4, low + 0.2), spacing), -1)]
    parts += [(fill.box((0.1 + x, low), (0.15 + x, low + 0.1), spacing), k) for x, k in LEGS_2D]
    return _joined(parts, (0.0, 1.0))


def crawler(spacing: float) -> Made:
    """Return a slab in 3D on four legs, each with a muscle in front and one behind."""
    floor = 3 * 2 * spacing
    top = floor + 0.1
    parts = [(fill.box((0.15, 0.15, top), (0.45, 0.35, top + 0.08), spacing), -1)]
    corners = [(x + half, y, floor) for x in (0.15, 0.35) for y in (0.15, 0.275) for half in (0.0, 0.05)]
    for k, low in enumerate(corners):
        parts.append((fill.box(low, (low[0] + 0.05, low[1] + 0.075, top), spacing), k))
    return _joined(parts, (0.0, 0.0, 1.0))


def worm(spacing: float) -> Made:
    """Return a bar that lies on the floor, of four pieces with a muscle above and one below, which pull along it."""
    low = max(0.03, 4 * spacing)
    parts = [
        (fill.box((0.1 + 0.08 * k, low + 0.03 * up), (0.18 + 0.08 * k, low + 0.03 * (up + 1)), spacing), 2 * k + up)
        for k in range(4)
        for up in (0, 1)
    ]
    return _joined(parts, (1.0, 0.0))


def wheel(spacing: float) -> Made:
    """Return a disk around a core without muscles; the rest is twelve sectors that pull towards the centre."""
    radius, sectors = 0.1, 12
    centre = np.array([0.2, max(0.03, 4 * spacing) + radius])
    points = fill.box((centre - radius).tolist(), (centre + radius).tolist(), spacing)
    arm = points - centre
    far = np.hypot(*arm.T)
    points, arm, far = (a[far <= radius] for a in (points, arm, far))
    angle = np.arctan2(arm[:, 1], arm[:, 0])
    muscles = np.floor((angle + np.pi) / (2 * np.pi) * sectors).astype(int) % sectors
    return points, np.where(far < 0.35 * radius, -1, muscles), arm / np.maximum(far, 1e-9)[:, None]


def _joined(parts: list[tuple[np.ndarray, int]], fibre: tuple[float, ...]) -> Made:
    points, muscles = (
        np.concatenate([p for p, _ in parts]),
        np.concatenate([np.full(len(p), k) for p, k in parts]),
    )
    return points, muscles, np.array(fibre)


ROBOTS = {
    "walker": Robot(walker, (1.0, 1.0), 4.0),
    "crawler": Robot(crawler, (1.0, 0.5, 0.5), 6.0),
    "worm": Robot(worm, (1.0, 0.5), 4.0),
    "wheel": Robot(wheel, (2.0, 0.5), 4.0, 0.8),
}
"""Name -> robot."""
