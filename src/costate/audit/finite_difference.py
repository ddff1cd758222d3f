"""Derivatives by differences: extrapolated to a step of zero, with ever smaller steps and from one side where there is a kink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from costate.audit.rounding import terms

Curve = Callable[[float], list[Tensor]]
"""A function of a number t that gives the outputs at t along a line."""

SHRINK = (1.0, 0.05, 0.0025)
"""Fractions of the step that are tried one after the other, until the function is smooth within one."""
SMALLER = (1e-4, 5e-6)
"""Fractions that are tried after them, where a kink is near: rounding then counts, so it is measured (rounding.py)."""
EPS = torch.finfo(torch.float64).eps
ROUNDING = 4.0
"""Rounding error of an extrapolated quotient of step h, as a multiple of that of the outputs divided by h."""


@dataclass(frozen=True)
class Differences:
    """Derivatives df/dt at t = 0 by differences, one tensor per output."""

    slopes: list[Tensor]
    uncertain: list[Tensor]
    """Uncertainty of every entry of each slope, in the unit of the slope."""
    step: float
    """Largest step that was used last."""

    def better(self, other: Differences) -> Differences:
        """Return, entry by entry, the less uncertain of two."""
        chosen = [b < a for a, b in zip(self.uncertain, other.uncertain, strict=True)]
        slopes = [torch.where(c, b, a) for c, a, b in zip(chosen, self.slopes, other.slopes, strict=True)]
        uncertain = [torch.where(c, b, a) for c, a, b in zip(chosen, self.uncertain, other.uncertain, strict=True)]
        return Differences(slopes, uncertain, other.step)


Enough = Callable[[Differences], bool]
"""A function that tells whether differences can be trusted."""


def richardson(f: Curve, step: float, levels: int = 8) -> tuple[list[Tensor], list[float]]:
    """Compute df/dt at t = 0 by central differences with steps halved `levels` times and extrapolated to zero.

    Returns the derivatives, and the uncertainty of each.
    """
    found = _extrapolated(lambda h: _central(f, h), step, levels, 4.0)
    return found.slopes, [largest(u) for u in found.uncertain]


def differences(f: Curve, step: float, enough: Enough) -> Differences:
    """Compute extrapolated central differences at the largest step at which they settle.

    Where they settle at none, every entry is taken from the step at which it is least uncertain, down to steps as small as rounding
    allows.
    """
    quotient = lambda h: _central(f, h)  # noqa: E731
    for part in SHRINK:
        found = _extrapolated(quotient, part * step, 8, 4.0)
        if enough(found):
            return found
    return _finest(quotient, step, terms(f), 4.0, enough)


def one_sided(f: Curve, middle: list[Tensor], step: float, enough: Enough) -> tuple[Differences, Differences]:
    """Compute the slopes to the left and to the right of t = 0, where f is `middle`, entry by entry as sure as they get."""
    sizes = terms(f)

    def side(sign: int) -> Differences:
        quotient = lambda h: [(y - m) / (sign * h) for y, m in zip(f(sign * h), middle, strict=True)]  # noqa: E731
        return _finest(quotient, step, sizes, 2.0, enough)

    return side(-1), side(1)


def _central(f: Curve, h: float) -> list[Tensor]:
    return [(a - b) / (2 * h) for a, b in zip(f(h), f(-h), strict=True)]


def _finest(quotient: Curve, step: float, sizes: Sequence[float], base: float, enough: Enough) -> Differences:
    found = None
    for part in (*SHRINK, *SMALLER):
        trial = _extrapolated(quotient, part * step, 6, base, sizes)
        found = trial if found is None else found.better(trial)
        if enough(found):
            break
    assert found is not None
    return found


def _extrapolated(
    quotient: Curve, step: float, levels: int, base: float, sizes: Sequence[float] | None = None
) -> Differences:
    """Extrapolate quotients of differences with steps halved `levels` times to a step of zero.

    Every entry of the tableau is compared with its two parents; the one that moved least wins (Ridders 1982).

    Args:
        quotient: Quotients of differences by the step.
        base: Factor by which the leading error falls when the step is halved: 4 for central differences, 2 for those of a side.
        sizes: Sizes of the terms of each output, whose rounding then counts; every entry of an output is chosen by itself. Else the
            uncertainty of an output is that of its worst entry.
    """
    tableau: list[list[list[Tensor]]] = []
    best: list[Tensor] = []
    errors: list[Tensor] = []
    for k in range(levels):
        h = step / 2**k
        row = [quotient(h)]
        for j in range(k):
            factor = base ** (j + 1)
            above = tableau[-1][j]
            row.append([(factor * x - y) / (factor - 1) for x, y in zip(row[j], above, strict=True)])
        if not tableau:
            best, errors = list(row[0]), [torch.full_like(x, torch.inf) for x in row[0]]
        for j in range(1, len(row)):
            for i, new in enumerate(row[j]):
                moved = torch.maximum((new - row[j - 1][i]).abs(), (new - tableau[-1][j - 1][i]).abs())
                if sizes is None:
                    moved = torch.full_like(moved, largest(moved))
                else:
                    moved = moved.clamp(min=ROUNDING * EPS * sizes[i] / h)
                nearer = moved < errors[i]
                best[i], errors[i] = torch.where(nearer, new, best[i]), torch.where(nearer, moved, errors[i])
        tableau.append(row)
    return Differences(best, errors, step)


def largest(x: Tensor) -> float:
    """Return the largest magnitude, or NaN if there is one."""
    return float(x.detach().abs().max()) if x.numel() else 0.0
