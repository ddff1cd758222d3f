"""Soft robots that walk, crawl or roll: parts of them are muscles, whose actuation over time is found by gradients through the
whole motion.

The walker in 2D has the shape, material and settings of DiffTaichi's (ICLR 2020, `diffmpm`): legs of two columns each, four waves,
a thousand steps, friction 0.5. Co-design also finds the stiffness of each part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.tasks.soft.actuation import WAVES, between_knots, waves
from costate.tasks.soft.found import SoftFound, Tell, descend
from costate.tasks.soft.shapes import ROBOTS

STIFFNESS = (0.3, 3.0)
"""Range of a part's stiffness in co-design, over the usual one."""


@dataclass(frozen=True)
class WalkerTask:
    """Make a soft robot walk to the right as far as possible."""

    summary: str = "a soft robot in 2D walks as far as possible (DiffTaichi's diffmpm)"
    robot: str = "walker"
    """Its shape, a row of `ROBOTS`."""
    cells: int = 128
    """Nodes along a metre."""
    dt: float = 1e-3
    steps: int = 1024
    iterations: int = 40
    rate: float = 0.1
    knots: int = 0
    """Points in time between which actuation is a straight line; 0: sine waves."""
    codesign: bool = False
    """Find the stiffness of every muscle and of the body, too."""
    goal: float = 0.1
    """Distance [m] from which on it counts as moving."""

    def model(self) -> MpmModel:
        """Return the robot on its floor."""
        dx, robot = 1 / self.cells, ROBOTS[self.robot]
        points, muscles, fibres = robot.make(dx / 2)
        dim = points.shape[1]
        numbers = {"density": 1.0, "E": 25.0, "nu": 0.25, "strength": robot.strength}
        numbers |= {f"fibre_{axis}": 0.0 for axis in "xyz"}
        varying = ("E",) if self.codesign else ()
        if fibres.ndim == 1:
            numbers |= {f"fibre_{axis}": float(f) for axis, f in zip("xyz", fibres, strict=False)}
        else:
            varying += tuple(f"fibre_{axis}" for axis in "xyz"[:dim])
        law = "muscle" if dim == 2 else "neo_hookean_muscle"
        body = SoftBody(points, dx / 2, law, numbers, muscles, varying, "robot")
        grid = MpmGrid(tuple(round(self.cells * length) for length in robot.room), dx)
        gravity = (0.0,) * (dim - 1) + (-3.8,)
        substeps = None if self.codesign else 1
        sides = {f"-{'xyz'[dim - 1]}": robot.friction}
        return MpmModel(grid, [body], self.dt, substeps, gravity, sides, segment=32)  # type: ignore[arg-type]

    def actuation(self, weights: Tensor, bias: Tensor) -> Tensor:
        """Return the actuation (steps, muscles) of weights (muscles, waves or knots) and biases (muscles)."""
        rows = between_knots(weights.T, self.steps) if self.knots else waves(weights, self.dt, self.steps)
        return torch.tanh(rows + bias)

    def solve(self, seed: int, tell: Tell, dtype: torch.dtype = torch.float64) -> SoftFound:
        """Solve from random weights."""
        model = self.model()
        g = torch.Generator().manual_seed(seed)
        n = model.n_muscles
        weights = 0.01 * torch.randn(n, self.knots or WAVES, generator=g, dtype=torch.float64)
        weights = weights.to(dtype).requires_grad_()
        bias, stiff = (torch.zeros(k, dtype=dtype, requires_grad=True) for k in (n, n + 1))
        start = model.start(dtype=dtype)
        unknowns = [weights, bias, *([stiff] if self.codesign else [])]

        def run():
            return model.run(
                self.steps, start, act=self.actuation(weights, bias), parameters=self._numbers(model, stiff)
            )

        with torch.no_grad():
            first = self._distance(model, run().x)
        losses = descend(lambda: -self._distance(model, run().x), unknowns, self.iterations, self.rate, tell)
        with torch.no_grad():
            history = run()
        distance = float(self._distance(model, history.x))
        facts = {"distance [m]": distance, "distance before [m]": float(first), "particles": model.particles}
        facts |= {"steps": self.steps, "unknowns": sum(w.numel() for w in unknowns)}
        rows = []
        if self.codesign:
            parts = [f"leg {k}" for k in range(n)] + ["body"]
            rows = [
                {"part": name, "E [Pa]": float(e)}
                for name, e in zip(parts, 25.0 * _factor(stiff.detach()), strict=True)
            ]
        act = self.actuation(weights, bias).detach().numpy()
        curves = {
            "Actuation": (
                self.dt * np.arange(self.steps),
                {f"muscle {k}": act[:, k] for k in range(n)},
                "time [s]",
                "actuation",
            ),
            "Way": (history.times.numpy(), {"centre": history.x[..., 0].mean(-1).numpy()}, "time [s]", "x [m]"),
        }
        return SoftFound(facts, distance > self.goal, losses, model, history.x, history.times, curves, rows)

    def _numbers(self, model: MpmModel, stiff: Tensor) -> dict[str, Tensor]:
        found = {}
        fibres = ROBOTS[self.robot].make(0.5 / self.cells)[2]
        if fibres.ndim == 2:
            found |= {f"fibre_{axis}": torch.as_tensor(f) for axis, f in zip("xyz", fibres.T, strict=False)}
        if self.codesign:
            parts = torch.as_tensor(np.asarray(model.bodies[0].muscles))  # the last entry is the body's, -1
            found["E"] = 25.0 * _factor(stiff)[parts]
        return found

    def _distance(self, model: MpmModel, x: Tensor) -> Tensor:
        return x[..., -1, :, 0].mean(-1) - x[..., 0, :, 0].mean(-1)


def _factor(stiff: Tensor) -> Tensor:
    low, high = (float(np.log(f)) for f in STIFFNESS)
    return torch.exp(low + (high - low) * torch.sigmoid(stiff + float(np.log(-low / high))))
