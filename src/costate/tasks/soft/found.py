"""Results of tasks of soft bodies, and Adam on their losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.continuum.mpm.model import MpmModel
from costate.core.display import number
from costate.sim.world import World

Tell = Callable[[str], object]
"""Function that shows what is being done."""


@dataclass
class SoftFound:
    """The result of a task."""

    facts: dict[str, Any]
    """Numbers that matter, before and after."""
    solved: bool
    losses: list[float]
    """Loss of every iteration."""
    model: MpmModel
    x: Tensor
    """Positions of the particles (frames, particles, dim) [m] of what was found."""
    times: Tensor
    curves: dict[str, tuple[np.ndarray, dict[str, np.ndarray], str, str]] = field(default_factory=dict)
    """Plots: title -> (x, name -> y, label of x, label of y)."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Table of what was found."""
    tools: Tensor | None = None
    """Points (frames, n, 3) [m] on what pushes the particles, which are shown with them."""
    robot: tuple[World, Tensor] | None = None
    """World and its states (steps + 1, nx), if robots take part."""


def descend(
    loss: Callable[[], Tensor], weights: Sequence[Tensor], iterations: int, rate: float, tell: Tell
) -> list[float]:
    """Lower a loss by Adam; the weights end as those of the lowest loss seen. Returns the loss of every iteration."""
    optimiser = torch.optim.Adam(weights, lr=rate)
    best, kept, losses = float("inf"), [w.detach().clone() for w in weights], []
    for k in range(iterations + 1):
        optimiser.zero_grad()
        value = loss()
        losses.append(float(value.detach()))
        if losses[-1] < best:
            best, kept = losses[-1], [w.detach().clone() for w in weights]
        tell(f"iteration {k} of {iterations}, loss {number(losses[-1])}")
        if k < iterations:
            value.backward()
            torch.nn.utils.clip_grad_norm_(list(weights), 10.0)
            optimiser.step()
    with torch.no_grad():
        for w, x in zip(weights, kept, strict=True):
            w.copy_(x)
    return losses
