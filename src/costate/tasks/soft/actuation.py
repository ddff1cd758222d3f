"""Actuation of muscles over time: waves, and straight lines between knots."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

OMEGA = 20.0
"""Angular frequency of the waves [rad/s]."""
WAVES = 4


def waves(weights: Tensor, dt: float, steps: int) -> Tensor:
    """Return (steps, muscles): sine waves of several phases, by weights (muscles, waves)."""
    t = dt * torch.arange(steps, dtype=weights.dtype)
    n = weights.shape[1]
    return torch.stack([torch.sin(OMEGA * t + 2 * np.pi / n * k) for k in range(n)], -1) @ weights.T


def between_knots(knots: Tensor, steps: int) -> Tensor:
    """Return (steps, muscles): straight lines between knots (knots, muscles) that are evenly spread over the steps."""
    place = torch.linspace(0, len(knots) - 1, steps, dtype=knots.dtype)
    left = place.long().clamp(max=len(knots) - 2)
    share = (place - left)[:, None]
    return (1 - share) * knots[left] + share * knots[left + 1]
