"""Small grids with walls, obstacles, open cells and random numbers."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from costate.continuum.fluid.grid import Grid, border


def scene(kind: str, d: int) -> Grid:
    """Return a grid: periodic, a closed box with an obstacle, or a box that is open on top."""
    shape = (12, 9) if d == 2 else (7, 6, 8)
    solid, opening = np.zeros(shape, bool), np.zeros(shape, bool)
    if kind != "periodic":
        solid = border(shape)
        solid[3:5, 3:5] = True
    if kind == "open":
        solid[..., -1], opening[..., -1] = False, True
    return Grid(shape, 0.1, solid, opening)


def drawn(grid: Grid, *lead: int, seed: int = 0, size: float = 1.0) -> Tensor:
    """Return random numbers (*lead, *shape)."""
    rng = np.random.default_rng(seed)
    return torch.as_tensor(size * rng.uniform(-1, 1, (*lead, *grid.shape)))


def still_walls(grid: Grid, velocity: Tensor) -> Tensor:
    """Return a velocity (d, *shape) that is 0 at walls."""
    return velocity * torch.as_tensor(grid.free)
