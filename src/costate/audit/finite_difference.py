"""Derivatives by differences: extrapolated to a step of zero, and one-sided where a function may have a kink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Curve = Callable[[float], list[Tensor]]
"""A function of a number t that gives the outputs at t along a line."""

SHRINK = (1.0, 0.05, 0.0025)
"""Fractions of the step that are tried one after the other, until the function is smooth within one."""


@dataclass(frozen=True)
class Differences:
    """Derivatives df/dt at t = 0 by differences, one entry per output."""

    slopes: list[Tensor]
    uncertain: list[float]
    """Uncertainty of each slope, in the unit of the slope."""
    step: float
    """Largest step that was used."""


def richardson(f: Curve, step: float, levels: int = 8) -> tuple[list[Tensor], list[float]]:
    """Compute df/dt at t = 0 by central differences with steps halved `levels` times and extrapolated to zero.

    Every entry of the tableau is compared with its two parents; the one that moved least wins (Ridders 1982).
    Returns the derivatives, and the uncertainty of each.
    """
    tableau: list[list[list[Tensor]]] = []
    best: list[Tensor] = []
    errors: list[float] = []
    for k in range(levels):
        h = step / 2**k
        row = [[(a - b) / (2 * h) for a, b in zip(f(h), f(-h), strict=True)]]
        for j in range(k):
            factor = 4.0 ** (j + 1)
            above = tableau[-1][j]
            row.append([(factor * x - y) / (factor - 1) for x, y in zip(row[j], above, strict=True)])
        if not tableau:
            best, errors = list(row[0]), [float("inf")] * len(row[0])
        for j in range(1, len(row)):
            for i, candidate in enumerate(row[j]):
                moved = max(largest(candidate - row[j - 1][i]), largest(candidate - tableau[-1][j - 1][i]))
                if moved < errors[i]:
                    best[i], errors[i] = candidate, moved
        tableau.append(row)
    return best, errors


def differences(f: Curve, step: float, enough: Callable[[list[Tensor], list[float]], bool]) -> Differences:
    """Compute extrapolated differences at the largest step at which they settle; if there is none, at the smallest.

    enough: Function of (slopes, uncertain) that tells whether they can be trusted.
    """
    found = Differences([], [], step)
    for part in SHRINK:
        found = Differences(*richardson(f, part * step), part * step)
        if enough(found.slopes, found.uncertain):
            break
    return found


def one_sided(f: Curve, middle: list[Tensor], step: float) -> tuple[list[Tensor], list[Tensor]]:
    """Compute the slopes to the left and to the right of t = 0, extrapolated once."""

    def slope(h: float) -> list[Tensor]:
        halves = [[(y - m) / t for y, m in zip(f(t), middle, strict=True)] for t in (h, h / 2)]
        return [2 * near - far for far, near in zip(*halves, strict=True)]

    return slope(-step), slope(step)


def largest(x: Tensor) -> float:
    """Return the largest magnitude, or NaN if there is one."""
    return float(x.detach().abs().max()) if x.numel() else 0.0
