"""Control of a jet: two fans steer a plume to a place on the other side of a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.continuum.fluid.grid import Grid, border
from costate.continuum.fluid.model import FluidModel
from costate.tasks.additive.descent import descend
from costate.tasks.additive.problem import Tell
from costate.tasks.smoke.problem import TOLERANCE, Film, FoundFlow, cells_of

STEPS = 60
DT = 0.04
"""Length of a step [s]."""
PIECES = 10
"""Number of pieces of equal length in which a fan has one strength."""
STRENGTH = 4.0
"""Acceleration in front of a fan at a control of 1 [m/s^2]."""


@dataclass(frozen=True)
class JetTask:
    """Find the strength of two fans over time that brings a rising plume to a place at the top of a box."""

    summary = "strength of two fans over time that brings a rising plume to a place"
    size: str = "small"
    iterations: int = 40
    rate: float = 0.1
    effort: float = 1e-4
    """Weight of the mean squared strength in the loss."""
    near: float = 0.02
    """Largest distance of the plume to the place to count as solved [m]; the box is 1 m wide."""

    def grid(self) -> Grid:
        """Return a box with walls at its sides and its bottom, open at its top."""
        n = cells_of(self.size)
        shape = (n, n + n // 2)
        walls = border(shape, axes=(0,)) | border(shape, axes=(1,), sides=(0,))
        return Grid(shape, 1 / n, walls, border(shape, axes=(1,), sides=(-1,)))

    def solve(self, number: int, tell: Tell, dtype: torch.dtype = torch.float64) -> FoundFlow:
        """Solve the problem of a number, which says where the plume should go."""
        grid = self.grid()
        model = FluidModel(grid, DT, STEPS, patterns=2, slip=True, tolerance=TOLERANCE)
        place = float(np.random.default_rng(number).uniform(0.3, 0.7))
        x = torch.as_tensor(grid.centres, dtype=dtype)
        source = 4.0 * torch.exp(-((x - torch.tensor([0.5, 0.1], dtype=dtype)) ** 2).sum(-1) / 0.004)
        upper = torch.sigmoid((x[..., 1] - 0.9) / 0.05)
        fans = torch.as_tensor(self._fans(grid), dtype=dtype)
        pieces = torch.nn.Parameter(torch.zeros(PIECES, 2, dtype=dtype))

        def run() -> tuple[Tensor, Tensor]:
            controls = pieces.repeat_interleave(STEPS // PIECES, 0)
            smoke = model.run(source=source, patterns=fans, controls=controls, buoyancy=(0.0, 4.0)).smoke
            there = upper * smoke[-1]
            return (there * x[..., 0]).sum() / there.sum(), smoke

        def loss() -> Tensor:
            return (run()[0] - place).square() + self.effort * pieces.square().mean()

        with torch.no_grad():
            before = float(run()[0])
        losses = descend(loss, [pieces], self.iterations, self.rate, tell)
        with torch.no_grad():
            after, smoke = run()
        error = abs(float(after) - place)
        times = torch.arange(STEPS + 1) * DT
        strength = pieces.detach().repeat_interleave(STEPS // PIECES, 0).numpy()
        return FoundFlow(
            {
                "place wanted [m]": place,
                "place before [m]": before,
                "place after [m]": float(after),
                "error [m]": error,
            },
            error <= self.near,
            losses,
            {"Smoke": Film(times, smoke, grid.cell)},
            {
                "Fans": (
                    DT * np.arange(STEPS),
                    {"left": strength[:, 0], "right": strength[:, 1]},
                    "time [s]",
                    "strength",
                )
            },
        )

    def _fans(self, grid: Grid) -> np.ndarray:
        """Return the accelerations that the fans give (2, 2, *shape) [m/s^2]: the left one blows to the right."""
        found = np.zeros((2, 2, *grid.shape))
        x = grid.face_centres(0)
        for k, (place, sign) in enumerate(((0.25, 1.0), (0.75, -1.0))):
            found[k, 0] = sign * STRENGTH * np.exp(-((x[..., 0] - place) ** 2 + (x[..., 1] - 0.5) ** 2) / 0.01)
        return found
