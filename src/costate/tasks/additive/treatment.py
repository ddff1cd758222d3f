"""Heat treatment while printing: as much time as possible in a window of temperatures."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import torch
from torch import Tensor

from costate.tasks.additive.descent import descend
from costate.tasks.additive.power import PowerCurve
from costate.tasks.additive.problem import Found, Tell, case_of


def in_window(T: ca.SX, settings: ca.SX) -> ca.SX:
    """Return 1 within a window of temperatures, 0 outside, with soft edges. settings: low, high, width of an edge [K]."""
    low, high = ((x - y) / settings[2] for x, y in ((T, settings[0]), (settings[1], T)))
    return (1 + ca.tanh(low / 2)) * (1 + ca.tanh(high / 2)) / 4  # sigmoids that cannot overflow


@dataclass(frozen=True)
class TreatmentTask:
    """Find the power over time that keeps the printed part in a window of temperatures for as long as possible."""

    summary = "power over time that keeps a printed part in a window of temperatures"
    size: str = "small"
    iterations: int = 100
    rate: float = 2e-2
    window: tuple[float, float] = (500.0, 700.0)
    """Temperatures of the treatment [K]."""
    edge: float = 20.0
    """Width of the window's soft edges [K]."""
    gain: float = 1.1
    """Factor by which the time must grow to count as solved."""

    def solve(self, number: int, tell: Tell, dtype: torch.dtype = torch.float64) -> Found:
        """Solve the problem of a number: that of the first guess."""
        case = case_of(self.size)
        model = case.model(observe=(in_window, 1, 3))
        share = torch.linspace(0, 1, model.steps, dtype=dtype)
        curve = PowerCurve(number, dtype, scales=(3.0, 2.0, 0.5))
        settings = torch.tensor([*self.window, self.edge], dtype=dtype)
        part = torch.as_tensor(model.mesh.node_birth > -float("inf"))

        def time(power: Tensor) -> Tensor:
            return model.run(power, settings=settings).integrals[part, 0].mean()

        losses = descend(
            lambda: -time(case.power * curve(share)), list(curve.parameters()), self.iterations, self.rate, tell, " s"
        )
        with torch.no_grad():
            found = model.run(case.power * curve(share), settings=settings)
        before, after = -losses[0], -min(losses)
        on = model.timeline.on > 0
        power = (case.power * curve(share)).detach().numpy()
        return Found(
            {
                "time in the window before [s]": before,
                "time in the window after [s]": after,
                "steps": model.steps,
                "nodes": len(model.mesh.nodes),
            },
            after >= self.gain * before,
            losses,
            {"Power while the laser is on": (model.timeline.times[on], {"found": power[on]}, "time [s]", "power [W]")},
            model,
            found.T,
            found.times,
        )
