"""Small scenes that tests of particles share."""

from __future__ import annotations

import numpy as np
import torch

from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid, cube
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.state import MpmState


def block(material: str, dim: int = 2, spline: str = "quadratic", **options) -> MpmModel:
    """A block near the floor, with particles off the lattice."""
    n = 24 if dim == 2 else 14
    dx = 1 / n
    low, high = ((0.3, 0.14), (0.6, 0.44)) if dim == 2 else ((0.3, 0.3, 0.25), (0.6, 0.6, 0.5))
    points = fill.box(low, high, dx / 2)
    points = points + 0.1 * dx * np.random.default_rng(3).normal(size=points.shape)
    body = SoftBody(
        points,
        dx / 2,
        material,
        options.pop("parameters", {}),
        options.pop("muscles", None),
        options.pop("varying", ()),
    )
    return MpmModel(cube(n, dim), [body], **{"dt": 2e-3, "sides": 0.4, "spline": spline, **options})


def moving(model: MpmModel, speed: float = 1.0, seed: int = 0) -> MpmState:
    """The block on its way down and sideways, each particle a little differently."""
    g = torch.Generator().manual_seed(seed)
    dim = model.grid.dim
    v = speed * torch.tensor([0.6, *[0.2] * (dim - 2), -1.5], dtype=torch.float64)
    noise = 0.1 * speed * torch.randn(model.particles, dim, generator=g, dtype=torch.float64)
    return model.start(v=v + noise)


def floating(body: SoftBody, dt: float, cells: int = 40, **options) -> MpmModel:
    """A body that touches nothing, without gravity."""
    return MpmModel(MpmGrid((cells,) * body.dim, 1 / cells), [body], dt, gravity=(0.0,) * body.dim, **options)
