"""Meshes of quadrilaterals in the plane, from which parts and their base plates are drawn up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Outline:
    """Quadrilaterals in the plane: those of a part, and around them those that only its base plate has."""

    points: NDArray[np.float64]
    """Positions (P, 2) [m]."""
    quads: NDArray[np.int64]
    """Corners (Q, 4), counter-clockwise."""
    part: NDArray[np.bool_]
    """Mask of those that the part stands on (Q,)."""


def rectangle(size: tuple[float, float], element: float, margins: tuple[float, float]) -> Outline:
    """Return a rectangle around the origin cut into about square pieces, with margins of a plate along x and y [m]."""
    x, y = (_lines(length, element, margin) for length, margin in zip(size, margins, strict=True))
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    quads = _grid(len(x), len(y))
    middle = points[quads].mean(axis=1)
    return Outline(points, quads, (np.abs(middle) < np.array(size) / 2).all(axis=1))


def disc(radii: tuple[float, float], element: float, margin: float) -> Outline:
    """Return a disc around the origin with a square core, of which the part lies between an inner and an outer radius.

    With an inner radius of 0 the core belongs to the part, else only to its plate.
    """
    inner, outer = radii
    side = max(1, round(np.pi / 2 * ((inner + outer) / 2 if inner > 0 else outer) / element))
    core = inner if inner > 0 else outer
    between = max(1, round(0.4 * core / element))
    walls, plate = _steps(core, outer, element), _steps(outer, outer + margin, element)
    square, rim = _square(side, core / 2), _rim(side)
    angles = np.linspace(-0.75 * np.pi, 1.25 * np.pi, 4 * side, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    shares = np.linspace(0, 1, between + 1)[1:]
    loops = [(1 - s) * square[rim] + s * core * circle for s in shares] + [r * circle for r in walls + plate]
    bands = _bands(rim, len(square), len(loops))
    quads = [_grid(side + 1, side + 1), *bands]
    begin, end = (1 + between if inner > 0 else 0), 1 + between + len(walls)
    part = np.concatenate([np.full(len(q), begin <= k < end) for k, q in enumerate(quads)])
    return Outline(np.concatenate([square, *loops]), np.concatenate(quads), part)


def _lines(length: float, element: float, margin: float) -> NDArray[np.float64]:
    """Return the coordinates of grid lines: the length is met exactly, the margin is cut into pieces of about the same size."""
    inside = np.linspace(-length / 2, length / 2, max(1, round(length / element)) + 1)
    beyond = _steps(length / 2, length / 2 + margin, element)
    return np.concatenate([-np.array(beyond)[::-1], inside, beyond])


def _steps(low: float, high: float, element: float) -> list[float]:
    """Return where pieces of about the size of an element end between two coordinates; none if these are equal."""
    if high - low <= 1e-9 * high:
        return []
    return np.linspace(low, high, max(1, round((high - low) / element)) + 1)[1:].tolist()


def _grid(nx: int, ny: int) -> NDArray[np.int64]:
    """Return the quadrilaterals of nx times ny points, of which those along y are neighbours."""
    p = np.arange(nx * ny).reshape(nx, ny)
    return np.stack([p[:-1, :-1], p[1:, :-1], p[1:, 1:], p[:-1, 1:]], axis=-1).reshape(-1, 4)


def _square(side: int, half: float) -> NDArray[np.float64]:
    line = np.linspace(-half, half, side + 1)
    return np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)


def _rim(side: int) -> NDArray[np.int64]:
    """Return the points on the edge of a square grid, counter-clockwise from the lower left corner (4 side,)."""
    p = np.arange((side + 1) ** 2).reshape(side + 1, side + 1)
    return np.concatenate([p[:-1, 0], p[-1, :-1], p[:0:-1, -1], p[0, :0:-1]])


def _bands(rim: NDArray[np.int64], start: int, loops: int) -> Sequence[NDArray[np.int64]]:
    """Return the quadrilaterals between a rim and the first of some loops of points, and between every loop and the next."""
    lines = [rim] + [start + k * len(rim) + np.arange(len(rim)) for k in range(loops)]
    return [np.stack([low, high, np.roll(high, -1), np.roll(low, -1)], axis=1) for low, high in pairwise(lines)]
