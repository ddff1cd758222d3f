"""Soft robots that walk: four legs are muscles, driven by sine waves whose weights are found by gradients through the whole motion.

The walker in 2D has the shape, material and settings of DiffTaichi's (ICLR 2020, `diffmpm`): legs of two columns each, four waves,
a thousand steps, friction 0.5. The crawler in 3D stands on four legs of two columns each. Co-design also finds the stiffness of
each part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid, cube
from costate.continuum.mpm.model import MpmModel
from costate.tasks.soft.found import SoftFound, Tell, descend

OMEGA = 20.0
"""Angular frequency of the waves [rad/s]."""
WAVES = 4
LEGS_2D = ((0.0, 0), (0.05, 1), (0.2, 2), (0.25, 3))
"""Left edges [m] of the columns of legs, 0.05 m by 0.1 m, and their muscles."""
STIFFNESS = (0.3, 3.0)
"""Range of a part's stiffness in co-design, over the usual one."""


@dataclass(frozen=True)
class WalkerTask:
    """Make a soft robot walk to the right as far as possible."""

    summary: str = "a soft robot in 2D walks as far as possible (DiffTaichi's diffmpm)"
    dim: int = 2
    cells: int = 128
    """Nodes along the longest side of the grid."""
    dt: float = 1e-3
    steps: int = 1024
    iterations: int = 40
    rate: float = 0.1
    codesign: bool = False
    """Find the stiffness of every muscle and of the body, too."""
    goal: float = 0.1
    """Distance [m] from which on it counts as walking."""

    def model(self) -> MpmModel:
        """Return the robot on its floor."""
        dx = 1 / self.cells
        points, muscles = _walker(dx / 2) if self.dim == 2 else _crawler(dx / 2)
        strength = 4.0 if self.dim == 2 else 6.0
        fibre = {"fibre_x": 0.0, "fibre_y": float(self.dim == 2), "fibre_z": float(self.dim == 3)}
        numbers = {"density": 1.0, "E": 25.0, "nu": 0.25, "strength": strength, **fibre}
        law = "muscle" if self.dim == 2 else "neo_hookean_muscle"
        varying = ("E",) if self.codesign else ()
        body = SoftBody(points, dx / 2, law, numbers, muscles, varying, "robot")
        grid = cube(self.cells) if self.dim == 2 else MpmGrid((self.cells, self.cells // 2, self.cells // 2), dx)
        up = "xyz"[self.dim - 1]
        gravity = (0.0,) * (self.dim - 1) + (-3.8,)
        substeps = None if self.codesign else 1
        return MpmModel(grid, [body], self.dt, substeps, gravity, {f"-{up}": 0.5}, segment=32)  # type: ignore[arg-type]

    def actuation(self, weights: Tensor, bias: Tensor) -> Tensor:
        """Return the actuation (steps, muscles) of weights (muscles, waves) and biases (muscles)."""
        t = self.dt * torch.arange(self.steps, dtype=weights.dtype)
        waves = torch.stack([torch.sin(OMEGA * t + 2 * np.pi / WAVES * k) for k in range(WAVES)], -1)
        return torch.tanh(waves @ weights.T + bias)

    def solve(self, seed: int, tell: Tell, dtype: torch.dtype = torch.float64) -> SoftFound:
        """Solve from random weights."""
        model = self.model()
        g = torch.Generator().manual_seed(seed)
        n = model.n_muscles
        weights = (0.01 * torch.randn(n, WAVES, generator=g, dtype=torch.float64)).to(dtype).requires_grad_()
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
        if not self.codesign:
            return {}
        parts = torch.as_tensor(np.asarray(model.bodies[0].muscles))  # the last entry is the body's, -1
        return {"E": 25.0 * _factor(stiff)[parts]}

    def _distance(self, model: MpmModel, x: Tensor) -> Tensor:
        return x[..., -1, :, 0].mean(-1) - x[..., 0, :, 0].mean(-1)


def _factor(stiff: Tensor) -> Tensor:
    low, high = (float(np.log(f)) for f in STIFFNESS)
    return torch.exp(low + (high - low) * torch.sigmoid(stiff + float(np.log(-low / high))))


def _walker(spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return particles and muscles of the walker: a bar on two legs of two columns each."""
    low = max(0.03, 4 * spacing)  # the floor ends at the third node
    parts = [(fill.box((0.1, low + 0.1), (0.4, low + 0.2), spacing), -1)]
    parts += [(fill.box((0.1 + x, low), (0.15 + x, low + 0.1), spacing), k) for x, k in LEGS_2D]
    return _joined(parts)


def _crawler(spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return particles and muscles of the crawler: a slab on four legs, each with a muscle in front and one behind."""
    floor = 3 * 2 * spacing
    top = floor + 0.1
    parts = [(fill.box((0.15, 0.15, top), (0.45, 0.35, top + 0.08), spacing), -1)]
    k = 0
    for x in (0.15, 0.35):
        for y in (0.15, 0.275):
            for half in (0.0, 0.05):
                low = (x + half, y, floor)
                parts.append((fill.box(low, (x + half + 0.05, y + 0.075, top), spacing), k))
                k += 1
    return _joined(parts)


def _joined(parts: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([p for p, _ in parts]), np.concatenate([np.full(len(p), k) for p, k in parts])
