"""Solutions of tasks of fluids, and the sizes of their grids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from costate.core.names import unknown

SIZES = {"small": 32, "medium": 64, "published": 110}
"""Size -> number of cells along an edge. "published" is that of DiffTaichi's smoke, with 100 steps."""
TOLERANCE = 1e-6
"""Largest error of the pressure solves: that of gradients is of this size."""


def cells_of(size: str) -> int:
    """Return the number of cells along an edge."""
    if size not in SIZES:
        raise ValueError(unknown("size", size, SIZES))
    return SIZES[size]


@dataclass
class Film:
    """A grid over time, to be shown."""

    times: Tensor
    """Times of the frames (K,) [s]."""
    values: Tensor
    """Numbers of the cells (K, nx, ny)."""
    cell: float
    """Edge of a cell [m]."""
    unit: str = ""
    limits: tuple[float, float] | None = None


@dataclass
class FoundFlow:
    """The result of a task."""

    facts: dict[str, Any]
    """Numbers that matter, before and after."""
    solved: bool
    losses: list[float]
    """Loss of every iteration."""
    films: dict[str, Film] = field(default_factory=dict)
    """Grids over time: title -> film."""
    curves: dict[str, tuple[np.ndarray, dict[str, np.ndarray], str, str]] = field(default_factory=dict)
    """Plots: title -> (x, name -> y, label of x, label of y)."""
