"""Numbered random problems: the same numbers whenever a problem is asked for; and the colour of target marks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

TARGET = (0.2, 0.7, 0.3, 1.0)
"""Colour of marks that say where something has to go; nothing touches them."""


def normal(numbers: Sequence[int], *shape: int) -> Tensor:
    """Return standard normal numbers of each problem, (B, *shape)."""
    return torch.stack([torch.randn(*shape, dtype=torch.float64, generator=_source(k)) for k in numbers])


def uniform(numbers: Sequence[int], low: Sequence[float], high: Sequence[float]) -> Tensor:
    """Return uniform numbers of each problem between bounds, (B, len(low))."""
    a, b = (torch.tensor(v, dtype=torch.float64) for v in (low, high))
    return a + (b - a) * torch.stack([torch.rand(len(a), dtype=torch.float64, generator=_source(k)) for k in numbers])


def correlated(white: np.ndarray, correlation: float) -> np.ndarray:
    """Return white noise (T, ...) as noise of the same variance in which every row is correlated with the one before."""
    scale = np.where(np.arange(len(white)) > 0, np.sqrt(1 - correlation**2), 1.0)
    rows = white * scale.reshape(-1, *[1] * (white.ndim - 1))
    for k in range(1, len(rows)):
        rows[k] += correlation * rows[k - 1]
    return rows


def interpolate(knots: Tensor, steps: int) -> Tensor:
    """Return values (K, ..., n) at even distances, joined by straight lines: (steps, ..., n)."""
    place = torch.linspace(0, knots.shape[0] - 1, steps, dtype=knots.dtype)
    left = place.floor().clamp(max=knots.shape[0] - 2).long()
    part = (place - left).reshape(-1, *[1] * (knots.dim() - 1))
    return (1 - part) * knots[left] + part * knots[left + 1]


def _source(number: int) -> torch.Generator:
    # Seeds next to each other are alike in the first numbers of some generators: spread them.
    return torch.Generator().manual_seed(0x9E3779B9 * (number + 1) % 2**31)
