"""The depth of the melt pool under the laser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from costate.continuum.locate import locate

if TYPE_CHECKING:
    from costate.continuum.heat.model import HeatModel

SOLID = 1000.0
"""Kelvin below the solidus that count as a depth of minus one step of the line."""
POINTS = 16
"""Points of a line downwards on which the temperature is looked at."""


class MeltDepth:
    """Measures how deep below the spot the solidus lies, in every frame in which the laser is on.

    On a line from the spot downwards, from the surface to the first point that is below the solidus, with a straight line between
    the last two points. A surface that is not molten has a negative depth, in proportion to what it lacks of the solidus, so that
    its gradient says in which direction it would melt.

    Args:
        model: The heat model, whose segments end in frames.
        reach: Length of the line [m].
        settle: Time for which the laser must have been on before a frame counts [s].
        lag: Time by which the look is behind the spot [s]: there, the pool is deepest.
    """

    def __init__(self, model: HeatModel, reach: float, settle: float = 0.3, lag: float = 0.1):
        line = model.timeline
        ends = np.minimum(np.arange(1, model.segments + 1) * model.segment, model.steps)
        lit = np.array([bool((line.on[max(e - round(settle / model.dt) - 1, 0) : e] > 0).all()) for e in ends])
        self.frames = np.flatnonzero(lit) + 1
        if not len(self.frames):
            raise ValueError(f"the laser is on for {settle} s before none of {len(ends)} frames; take shorter segments")
        last = ends[self.frames - 1] - 1
        self.times = line.times[last] + model.dt
        bottom = model.mesh.nodes[:, 2].min()
        spots = model.path.at(self.times - lag)[0]
        self.depths = np.linspace(0, reach, POINTS)
        points = np.repeat(spots[:, None], POINTS, axis=1)
        points[..., 2] = np.maximum(points[..., 2] - self.depths - 1e-9, bottom)
        nodes, weights = locate(model.mesh, points.reshape(-1, 3))
        self.nodes = torch.as_tensor(nodes.reshape(*points.shape[:2], 8))
        self.weights = torch.as_tensor(weights.reshape(*points.shape[:2], 8))
        self.solidus = model.material.solidus

    def __call__(self, T: Tensor) -> Tensor:
        """Return the depths (looks,) [m] from temperatures (frames, nodes) [K]."""
        rows = torch.as_tensor(self.frames)[:, None, None]
        line = (T[rows, self.nodes] * self.weights.to(T)).sum(-1)
        hot = (line >= self.solidus).long().cumprod(-1).sum(-1)  # points before the first that is solid
        k = (hot - 1).clamp(0, POINTS - 2)[:, None]
        above, below = line.gather(1, k)[:, 0], line.gather(1, k + 1)[:, 0]
        step = float(self.depths[1])
        molten = ((above - self.solidus) / (above - below).clamp(min=1.0)).clamp(max=1.0)
        return step * (k[:, 0].to(T) + torch.where(hot > 0, molten, (above - self.solidus) / SOLID))
