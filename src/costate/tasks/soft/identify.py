"""Numbers of a material from an observed motion, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import least_squares
from torch import Tensor

from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import cube
from costate.continuum.mpm.model import MpmModel
from costate.identify.noise.correlated import record_intervals
from costate.tasks.numbers import correlated
from costate.tasks.soft.found import SoftFound, Tell

UNKNOWN: dict[str, dict[str, tuple[float, float, float]]] = {
    "neo_hookean": {"E": (3e3, 5e3, 1.2e4), "nu": (0.1, 0.25, 0.42)},
    "plasticine": {"E": (5e3, 8e3, 1.5e4), "yield": (60.0, 150.0, 400.0)},
    "liquid": {"bulk": (5e3, 1e4, 2e4), "viscosity": (0.5, 5.0, 20.0)},
}
"""Material -> unknown number -> (least, first guess, greatest)."""


@dataclass(frozen=True)
class MaterialTask:
    """Drop a block on the floor, watch some of its points with noise, and find what it is made of."""

    summary: str = "Young's modulus and Poisson's ratio of a block from its fall, with intervals"
    material: str = "neo_hookean"
    cells: int = 32
    steps: int = 120
    iterations: int = 30
    noise: float = 5e-4
    """Standard deviation of an observed coordinate [m]."""
    correlation: float = 0.0
    """Correlation of the noise of a coordinate with that of the one before."""
    watched: int = 24
    """Number of points that are watched."""
    frames: int = 10
    """Steps between two pictures."""

    def model(self) -> MpmModel:
        """Return the block above the floor; substeps fit the stiffest material within the bounds."""
        dx = 1 / self.cells
        points = fill.box((0.35, 0.11), (0.65, 0.36), dx / 2)
        most = {name: high for name, (_, _, high) in UNKNOWN[self.material].items()}
        body = SoftBody(points, dx / 2, self.material, most, name="block")
        return MpmModel(cube(self.cells), [body], 2e-3, sides={"-y": 0.3}, segment=self.frames)

    def solve(self, seed: int, tell: Tell, dtype: torch.dtype = torch.float64) -> SoftFound:
        """Solve for random true values and noise."""
        model, random = self.model(), np.random.default_rng(seed)
        ranges = np.array(list(UNKNOWN[self.material].values()))
        names = list(UNKNOWN[self.material])
        low, first, high = ranges.T
        truth = low + (high - low) * random.uniform(0.25, 0.75, len(names))
        seen = torch.as_tensor(random.choice(model.particles, self.watched, replace=False))
        start = model.start(v=torch.tensor([0.4, -1.5], dtype=dtype))

        def run(values: Tensor):
            return model.run(self.steps, start, parameters=dict(zip(names, values, strict=True)))

        def watch(values: Tensor) -> Tensor:
            return run(values).x[1:, seen].flatten(1)

        clean = watch(torch.as_tensor(truth, dtype=dtype)).detach().numpy()
        measured = clean + self.noise * correlated(random.normal(size=clean.shape), self.correlation)
        losses: list[float] = []

        def residual(values: np.ndarray) -> np.ndarray:
            r = watch(torch.as_tensor(values, dtype=dtype)).numpy() - measured
            losses.append(float(np.mean(r**2)))
            tell(f"evaluation {len(losses)}, {1e3 * np.sqrt(losses[-1]):.3g} mm")
            return r.ravel() / self.noise

        def jacobian(values: np.ndarray) -> np.ndarray:
            point = torch.as_tensor(values, dtype=dtype)
            ways = [torch.zeros_like(point).index_fill(0, torch.tensor(k), 1.0) for k in range(len(names))]
            columns = [torch.func.jvp(watch, (point,), (w,))[1].detach().numpy().ravel() for w in ways]
            return np.stack(columns, 1) / self.noise

        bounds = (low, high)
        found = least_squares(residual, first, jacobian, bounds, x_scale=first, max_nfev=self.iterations)  # type: ignore[arg-type]
        ends = record_intervals(found.x, found.jac, found.fun, len(measured))
        rows = [
            {"parameter": n, "true": t, "found": x, "from": a, "to": b}
            for n, t, x, a, b in zip(names, truth, found.x, *ends, strict=True)
        ]
        facts = {
            f"{r['parameter']} (true {r['true']:.4g})": f"{r['found']:.4g} ± {r['to'] - r['found']:.2g}" for r in rows
        }
        facts |= {
            "true values in the intervals": f"{int(((ends[0] <= truth) & (truth <= ends[1])).sum())} of {len(names)}"
        }
        history = run(torch.as_tensor(found.x, dtype=dtype))
        solved = bool((np.abs(found.x / truth - 1) < 0.05).all())
        return SoftFound(facts, solved, losses, model, history.x, history.times, {}, rows)
