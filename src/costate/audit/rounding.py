"""The size of the terms that were summed to a result, estimated from the noise that their rounding leaves.

A derivative may be zero, or small, because large terms cancel. Then the result holds their rounding errors, and an error must be
judged by the size of the terms, not by that of the result. Where terms of size s are summed, values at nearby points scatter by
about eps s around a smooth curve; third differences remove the curve (Moré and Wild, Estimating computational noise, SIAM J. Sci.
Comput. 33, 2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

POINTS, ORDER = 12, 3
"""Number of values along a line, and order of their differences. One jump spoils ORDER + 1 of POINTS - ORDER differences, which is
less than half of them, so that a median does not see it."""
SPACINGS = (math.pi / 3, math.e / 2, math.sqrt(2) / 2)
"""Distances of the points, as multiples of the square root of eps: too small for third differences to see a smooth curve, large
enough to move sums of terms of size 1 / sqrt(eps). Several, since points at a multiple of the rounding unit all round alike."""
SPREAD = math.sqrt(math.comb(2 * ORDER, ORDER))
"""Standard deviation of a difference of independent values, as a multiple of that of the values."""
MEDIAN = 0.6745
"""Median of the magnitude of normal numbers, as a multiple of their standard deviation."""


def terms(f: Callable[[float], list[Tensor]], dtype: torch.dtype = torch.float64) -> list[float]:
    """Estimate the size of the terms that each result of f is the sum of: the largest noise of an entry, divided by eps.

    f: Function of t that gives results along a line whose direction has entries of size one, computed in the given type.
    """
    eps = torch.finfo(dtype).eps
    return [max(found) / eps for found in zip(*(_noises(f, s * math.sqrt(eps)) for s in SPACINGS), strict=True)]


def _noises(f: Callable[[float], list[Tensor]], spacing: float) -> list[float]:
    rows = [[y.detach().double().reshape(-1) for y in f(spacing * k)] for k in range(-POINTS // 2, POINTS // 2)]
    return [_noise(torch.stack(values)) for values in zip(*rows, strict=True)]


def _noise(values: Tensor) -> float:
    """Estimate the largest standard deviation of an entry from a smooth curve. values: (POINTS, n)."""
    if not values.shape[1]:
        return 0.0
    typical = values.diff(n=ORDER, dim=0).abs().median(dim=0).values
    return float(typical.max()) / (MEDIAN * SPREAD)
