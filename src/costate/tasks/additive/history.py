"""Reproduce a temperature history: the published case of Mozaffar and Cao, with a power curve given by a small network of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.tasks.additive.descent import descend
from costate.tasks.additive.power import PowerCurve
from costate.tasks.additive.problem import Found, Tell, case_of


@dataclass(frozen=True)
class HistoryTask:
    """Find the power that leads to given temperatures of all nodes in every frame."""

    summary = "power over time that gives a printed part a wanted temperature history"
    size: str = "small"
    iterations: int = 200
    rate: float = 1e-2
    scales: tuple[float, float, float] = (5.0, 1.0, 0.5)
    """Scales of the first guess (see `power.py`)."""
    reduction: float = 0.1
    """Share of the first error that may be left to count as solved; as much as the published run left."""

    def solve(self, number: int, tell: Tell, dtype: torch.dtype = torch.float64) -> Found:
        """Solve the problem of a number: target and first guess are two random networks."""
        case = case_of(self.size)
        model = case.model()
        share = torch.linspace(0, 1, model.steps, dtype=dtype)
        wanted = case.power * PowerCurve(1000 + number, dtype)(share).detach()
        with torch.no_grad():
            target = model.run(wanted, told=lambda k, n: tell(f"target, step {k} of {n}")).T
        curve = PowerCurve(number, dtype, self.scales)
        power: list[Tensor] = []

        def loss() -> Tensor:
            power[:] = [case.power * curve(share)]
            return ((model.run(power[0]).T - target) ** 2).mean()

        losses = descend(loss, list(curve.parameters()), self.iterations, self.rate, tell, " K^2")
        with torch.no_grad():
            found = model.run(case.power * curve(share))
        before, after = np.sqrt(losses[0]), np.sqrt(min(losses))
        on = model.timeline.on > 0
        t = model.timeline.times
        return Found(
            {
                "error before [K]": float(before),
                "error after [K]": float(after),
                "steps": model.steps,
                "nodes": len(model.mesh.nodes),
            },
            bool(after <= self.reduction * before),
            losses,
            {
                "Power while the laser is on": (
                    t[on],
                    {"wanted": wanted.numpy()[on], "found": (case.power * curve(share)).detach().numpy()[on]},
                    "time [s]",
                    "power [W]",
                )
            },
            model,
            found.T,
            found.times,
        )
