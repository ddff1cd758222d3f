"""Identification of a towel, its bending stiffness and its friction, from its fall over a ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import costate as cs
from costate.continuum.cloth.body import sheet
from costate.continuum.cloth.contact import Collider
from costate.continuum.cloth.model import ClothModel
from costate.continuum.cloth.state import ClothHistory
from costate.continuum.cloth.step import Solver
from costate.identify.noise.correlated import record_intervals
from costate.tasks.cloth.methods import minimise
from costate.tasks.cloth.problem import ClothFound, ClothProblem, ClothTask, Tell, found_of
from costate.tasks.numbers import correlated

UNKNOWN = {"friction": (0.1, 0.25, 0.8), "bending": (5e-5, 3e-4, 2e-3)}
"""Unknown number -> (least, first guess, greatest). Bending stiffness [N m]."""
CLOSE = 0.05
"""Largest relative error of a number that counts as found."""


@dataclass(frozen=True)
class TowelTask(ClothTask):
    """Let a towel fall over a ball, watch some of its points with noise, and find friction and bending stiffness."""

    summary: str = "friction and bending stiffness of a towel from its fall over a ball, with intervals"
    steps: int = 35
    tolerance: float = 1e-6
    points: int = 10
    """Points along a side."""
    noise: float = 5e-4
    """Standard deviation of an observed coordinate [m]."""
    correlation: float = 0.0
    """Correlation of the noise of a coordinate with that of the one before."""
    watched: int = 20
    """Number of points that are watched."""

    def model(self) -> ClothModel:
        """Return the towel above the ball."""
        towel = sheet((self.points, self.points), (0.3, 0.3), name="towel")
        ball = Collider(cs.shapes.sphere(0.1), name="ball")
        return ClothModel([towel], dt=1 / 100, colliders=[ball], solver=Solver(self.tolerance))

    def problem(self, seed: int) -> ClothProblem:
        return self._drawn(seed)[0]

    def _drawn(self, seed: int) -> tuple[ClothProblem, np.ndarray]:
        """Return a problem, and the logarithms of the true values."""
        model, random = self.model(), np.random.default_rng(seed)
        low, first, high = np.log(np.array(list(UNKNOWN.values()))).T
        truth = low + (high - low) * random.uniform(0.25, 0.75, len(UNKNOWN))
        shift = torch.tensor([*random.uniform(0.02, 0.04, 2), 0.103])
        start = model.start(model.start().x + shift)
        seen = torch.as_tensor(random.choice(model.points, self.watched, replace=False))

        def play(z: Tensor) -> ClothHistory:
            return model.run(self.steps, start, friction=z[:1].exp(), parameters={"bending": z[1].exp()})

        clean = play(torch.as_tensor(truth)).x[1:, seen]
        noise = self.noise * correlated(random.normal(size=clean.shape), self.correlation)
        measured = (clean + torch.as_tensor(noise)).flatten()

        def residuals(z: Tensor, motion: ClothHistory) -> Tensor:
            return (motion.x[1:, seen].flatten() - measured) / self.noise

        return ClothProblem(model, first, (low, high), play, residuals, spread=0.3), truth

    def solve(self, seed: int, tell: Tell) -> ClothFound:
        """Solve for random true values, a random place of the towel, and noise."""
        problem, truth = self._drawn(seed)
        counted = minimise(problem, self.method, self.iterations, tell)
        facts = counted.facts
        best = counted.best
        ends_of = record_intervals(best, counted.jacobian(best), counted.residual(best), self.steps)
        rows: list[dict[str, float | str]] = []
        for name, z, t, low, high in zip(UNKNOWN, best, truth, *ends_of, strict=True):
            ends = {"found": np.exp(z), "from": np.exp(low), "to": np.exp(high)}
            rows.append({"parameter": name, "true": np.exp(t)} | {k: float(v) for k, v in ends.items()})
        told = {
            f"{r['parameter']} (true {r['true']:.4g})": f"{r['found']:.4g}, from {r['from']:.4g} to {r['to']:.4g}"
            for r in rows
        }
        error = np.abs(np.exp(counted.best - truth) - 1)
        motion = problem.play(torch.as_tensor(counted.best))
        found = found_of(
            problem, motion, told | {"largest error [%]": 100 * float(error.max())} | facts, bool((error < CLOSE).all()),
            counted.losses,
        )  # fmt: skip
        found.rows = rows
        return found
