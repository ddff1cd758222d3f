"""Conductivity, absorptivity and convection from a few noisy thermocouples, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import least_squares
from torch import Tensor

from costate.identify.noise.correlated import record_intervals
from costate.tasks.additive.problem import Found, Tell, case_of
from costate.tasks.numbers import correlated

NAMES = ("conductivity", "absorptivity", "convection")
BOUNDS = ((0.2, 2.0), (0.05, 1.0), (1.0, 500.0))


@dataclass(frozen=True)
class ThermocoupleTask:
    """Find three numbers of a process from the readings of thermocouples in the base plate and the part."""

    summary = "conductivity, absorptivity and convection of a printing process from thermocouples"
    size: str = "small"
    iterations: int = 30
    noise: float = 2.0
    """Standard deviation of a reading [K]."""
    correlation: float = 0.0
    """Correlation of the noise of a reading with that of the one before."""
    couples: int = 4
    """Number of thermocouples."""

    def solve(self, number: int, tell: Tell, dtype: torch.dtype = torch.float64) -> Found:
        """Solve the problem of a number: true values and noise are random."""
        random = np.random.default_rng(number)
        case = case_of(self.size)
        whole = case.model()
        inside = whole.mesh.centres[random.choice(whole.mesh.alive(-np.inf), self.couples, replace=False)]
        dt = min(whole.dt, 0.9 * whole.longest / BOUNDS[0][1])  # stable for every conductivity within the bounds
        model = case.model(sensors=inside, surroundings=type(case.surroundings)(), dt=dt)
        truth = np.array([random.uniform(0.7, 1.3), random.uniform(0.3, 0.6), random.uniform(20.0, 80.0)])
        clean = self._readings(model, torch.as_tensor(truth, dtype=dtype), case.power).detach()
        measured = clean.numpy() + self.noise * correlated(random.normal(size=clean.shape), self.correlation)
        losses: list[float] = []

        def residual(x: np.ndarray) -> np.ndarray:
            r = (self._readings(model, torch.as_tensor(x, dtype=dtype), case.power).numpy() - measured).ravel()
            losses.append(float(np.mean(r**2)))
            tell(f"evaluation {len(losses)}, {np.sqrt(losses[-1]):.3g} K")
            return r / self.noise

        def jacobian(x: np.ndarray) -> np.ndarray:
            point = torch.as_tensor(x, dtype=dtype)
            columns = []
            for k in range(len(NAMES)):
                tangent = torch.zeros_like(point)
                tangent[k] = 1
                found = torch.func.jvp(lambda v: self._readings(model, v, case.power), (point,), (tangent,))
                columns.append(found[1].detach().numpy().ravel())
            return np.stack(columns, 1) / self.noise

        bounds = np.array(BOUNDS).T
        first = np.array([1.0, 0.45, 50.0])
        found = least_squares(
            residual,
            first,
            jacobian,  # type: ignore[arg-type]
            (bounds[0], bounds[1]),
            x_scale=first,
            max_nfev=self.iterations,
        )
        low, high = record_intervals(found.x, found.jac, found.fun, len(measured))
        hits = (low <= truth) & (truth <= high)
        rows = [
            {"parameter": n, "true": t, "found": x, "from": a, "to": b}
            for n, t, x, a, b in zip(NAMES, truth, found.x, low, high, strict=True)
        ]
        with torch.no_grad():
            run = model.run(case.power, **dict(zip(NAMES, torch.as_tensor(found.x, dtype=dtype), strict=True)))
        fits = {f"thermocouple {k}": measured[:, k] for k in range(self.couples)}
        fits |= {f"model {k}": run.readings.numpy()[:, k] for k in range(self.couples)}
        return Found(
            {f"{r['parameter']} (true {r['true']:.4g})": f"{r['found']:.4g} ± {r['to'] - r['found']:.2g}" for r in rows}
            | {"true values in the intervals": int(hits.sum())},
            bool((np.abs(found.x / truth - 1) < 0.05).all()),
            losses,
            {"Readings": (model.timeline.times, fits, "time [s]", "temperature [K]")},
            model,
            run.T,
            run.times,
            rows,
        )

    def _readings(self, model, x: Tensor, power: float) -> Tensor:
        values = dict(zip(NAMES, x.unbind(-1), strict=True))
        return model.run(power, dtype=x.dtype, **values).readings
