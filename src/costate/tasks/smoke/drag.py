"""Drag of a shape: the outline of a given area that a stream pushes least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.continuum.fluid.grid import Grid
from costate.continuum.fluid.model import FluidModel
from costate.tasks.additive.descent import descend
from costate.tasks.additive.problem import Tell
from costate.tasks.smoke.problem import TOLERANCE, Film, FoundFlow, cells_of

RADIUS = 0.12
"""Radius of the circle whose area the shape has [m]; the tunnel is 1 m wide."""
REYNOLDS = 40.0
"""Speed (1 m/s) times the circle's diameter, by the viscosity."""
RESISTANCE = 200.0
"""Resistance inside of the shape [1/s]."""
WAVES = 5
"""Number of waves of the outline, which is symmetric to the stream."""


@dataclass(frozen=True)
class DragTask:
    """Find the outline of a given area that a stream pushes least."""

    summary = "outline of a given area that a stream pushes least"
    size: str = "small"
    iterations: int = 40
    rate: float = 0.03
    less: float = 0.8
    """Share of the circle's drag below which it counts as solved."""

    def solve(self, number: int, tell: Tell, dtype: torch.dtype = torch.float64) -> FoundFlow:
        """Solve the problem of a number: that of the first outline, a circle for 0 and a bumpy one else."""
        model, given = self.tunnel(dtype)
        grid = model.grid
        random = np.random.default_rng(number).normal(size=WAVES) * 0.05 * (number > 0)
        waves = torch.nn.Parameter(torch.as_tensor(random, dtype=dtype))
        viscosity = 2 * RADIUS / REYNOLDS

        def drag(resistance: Tensor) -> Tensor:
            stream = torch.zeros(2, *grid.shape, dtype=dtype)
            stream[0] = 1.0
            history = model.run(stream, given=given, resistance=resistance, viscosity=viscosity)
            return history.force[model.steps // 2 :, 0].mean()

        with torch.no_grad():
            circle = float(drag(self.resistance(grid, torch.zeros(WAVES, dtype=dtype))))
        losses = descend(lambda: drag(self.resistance(grid, waves)) / circle, [waves], self.iterations, self.rate, tell)
        with torch.no_grad():
            shape = self.resistance(grid, waves)
            stream = torch.zeros(2, *grid.shape, dtype=dtype)
            stream[0] = 1.0
            history = model.run(stream, given=given, resistance=shape, viscosity=viscosity)
        area = float(shape.sum()) * grid.cell**2 / RESISTANCE
        facts = {
            "drag of the circle, by density [m^3/s^2]": circle,
            "drag of the first outline, by the circle's": losses[0],
            "drag found, by the circle's": min(losses),
            "area [m^2]": area,
            "area of the circle [m^2]": np.pi * RADIUS**2,
            "Reynolds number": REYNOLDS,
        }
        films = {
            "Speed": Film(history.times, history.velocity.square().sum(1).sqrt(), grid.cell, "m/s"),
            "Shape": Film(history.times[:1], shape[None] / RESISTANCE, grid.cell, limits=(0.0, 1.0)),
        }
        return FoundFlow(facts, min(losses) < self.less, losses, films)

    def tunnel(self, dtype: torch.dtype) -> tuple[FluidModel, Tensor]:
        """Return a tunnel 1.5 m long, and the stream (2, *shape) of 1 m/s that enters and leaves by a column of solid cells."""
        n = cells_of(self.size)
        shape = (n + n // 2, n)
        solid = np.zeros(shape, bool)
        solid[0] = True
        given = torch.zeros(2, *shape, dtype=dtype)
        given[0, :2] = 1.0
        steps = 2 * n
        return FluidModel(Grid(shape, 1 / n, solid), 0.5 / n, steps, porous=True, tolerance=TOLERANCE), given

    def resistance(self, grid: Grid, waves: Tensor) -> Tensor:
        """Return the resistance of the cells (*shape) [1/s]: an outline r(angle) of the area of the circle, with a soft edge."""
        x = torch.as_tensor(grid.centres, dtype=waves.dtype) - torch.tensor([0.5, 0.5], dtype=waves.dtype)
        angle, distance = torch.atan2(x[..., 1], x[..., 0]), x.norm(dim=-1)
        every = torch.linspace(0, 2 * np.pi, 257, dtype=waves.dtype)[:-1]
        k = torch.arange(1, WAVES + 1, dtype=waves.dtype)

        def outline(a: Tensor) -> Tensor:
            return torch.exp((waves * torch.cos(k * a[..., None])).sum(-1))

        size = RADIUS / outline(every).square().mean().sqrt()
        return RESISTANCE * torch.sigmoid((size * outline(angle) - distance) / (0.5 * grid.cell))
