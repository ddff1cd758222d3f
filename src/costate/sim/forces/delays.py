"""Delays of actuators, as filters of control sequences. Delays that are part of the state are activations (general.py)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from costate.core.constants import Constants


@dataclass(frozen=True, eq=False)
class Lag:
    """First-order lag: time_constant dy/dt = u - y, exact for controls that are constant over a step.

    Step t acts with the y at its start, as MuJoCo's `filterexact` actuators do; y starts as `initial`.
    """

    time_constant: float | Tensor
    """Time constant [s], positive; a tensor broadcasts with a control and may be learnt."""

    def apply(self, controls: Tensor, dt: float, initial: Tensor | float = 0.0) -> Tensor:
        """Return the controls that act (T, ..., nu) where these (T, ..., nu) are given."""
        time = torch.as_tensor(self.time_constant, dtype=controls.dtype)
        if not bool((time > 0).all()) or not dt > 0:
            raise ValueError(f"Lag: time constant and dt must be positive [s], got {self.time_constant} and {dt}")
        keep = torch.exp(-dt / time)
        y = torch.as_tensor(initial, dtype=controls.dtype).expand(controls.shape[1:])
        acting = []
        for u in controls:
            acting.append(y)
            y = u + keep * (y - u)
        return torch.stack(acting) if acting else controls


@dataclass(frozen=True)
class Latency(Constants):
    """Controls arrive some steps late; until then `initial` acts."""

    steps: int

    def apply(self, controls: Tensor, initial: Tensor | float = 0.0) -> Tensor:
        """Return the controls that act (T, ..., nu) where these (T, ..., nu) are given."""
        if self.steps < 0:
            raise ValueError(f"Latency: steps must not be negative, got {self.steps}")
        n = min(self.steps, controls.shape[0])
        first = torch.as_tensor(initial, dtype=controls.dtype).expand(n, *controls.shape[1:])
        return torch.cat([first, controls[: controls.shape[0] - n]])
