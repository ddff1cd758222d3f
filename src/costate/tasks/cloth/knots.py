"""Motions between knots."""

from __future__ import annotations

import torch
from torch import Tensor


def smooth(knots: Tensor, steps: int) -> Tensor:
    """Return (steps, ...): values at the ends of steps, on cubic curves through knots (k, ...) that are evenly spread in time.

    The curves are Catmull-Rom's: slopes at inner knots are those between their neighbours, and 0 at both ends. The first knot is
    at the beginning of the first step.
    """
    k = len(knots)
    place = torch.arange(1, steps + 1, dtype=knots.dtype) * ((k - 1) / steps)
    left = place.long().clamp(max=k - 2)
    s = (place - left).reshape(-1, *[1] * (knots.dim() - 1))
    slope = torch.cat([torch.zeros_like(knots[:1]), (knots[2:] - knots[:-2]) / 2, torch.zeros_like(knots[:1])])
    a, b, da, db = knots[left], knots[left + 1], slope[left], slope[left + 1]
    return (1 + 2 * s) * (1 - s) ** 2 * a + s**2 * (3 - 2 * s) * b + s * (1 - s) ** 2 * da - s**2 * (1 - s) * db
