"""Comparison of a derivative with differences of the function, entry by entry: central ones, or those of a side near a kink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from costate.audit.finite_difference import Curve, Differences, differences, largest, one_sided

TRUSTED = 0.1
"""Relative uncertainty below which the size of a difference tells how large a derivative is: that of a jump is of order one."""


@dataclass(frozen=True)
class Verdict:
    """The result of a comparison of one output."""

    error: float
    """Largest relative error of the entries that could be compared."""
    compared: bool
    """True if there is something to compare every entry with."""
    kink: bool
    """True if the point is on a kink, and the derivative is one of the two slopes or between them."""


class Slopes:
    """The derivative of all outputs along a line by differences, as far as they settle."""

    def __init__(self, f: Curve, middle: list[Tensor], step: float, tol: float, floor: Sequence[float]):
        """Compute central differences. Those of the sides are computed when they are needed.

        Args:
            f: Outputs along the line.
            middle: Outputs at its start.
            step: Largest step.
            tol: Largest relative error allowed.
            floor: Size of a derivative of each output below which errors are relative to this size.
        """
        self.f, self.middle, self.step, self.tol, self.floor = f, middle, step, tol, floor
        self.central = differences(f, step, self._enough)
        self._sides: tuple[Differences, Differences] | None = None

    def _enough(self, found: Differences) -> bool:
        return all(bool(self._sure(found, k).all()) for k in range(len(found.slopes)))

    def _size(self, found: Differences, k: int) -> float:
        slope, uncertain = found.slopes[k], found.uncertain[k]
        return largest(slope[uncertain <= TRUSTED * slope.abs()]) + self.floor[k]

    def _sure(self, found: Differences, k: int, size: float | None = None) -> Tensor:
        return found.uncertain[k] <= 0.5 * self.tol * (self._size(found, k) if size is None else size)

    @property
    def settled(self) -> bool:
        """True if central differences of all outputs can be trusted."""
        return self._enough(self.central)

    @property
    def sides(self) -> tuple[Differences, Differences]:
        """Slopes to the left and to the right."""
        if self._sides is None:
            self._sides = one_sided(self.f, self.middle, self.step, self._enough)
        return self._sides

    def uncertainty(self, k: int) -> float:
        """Return how uncertain the central differences of an output are, relative to their size."""
        return largest(self.central.uncertain[k]) / (self._size(self.central, k) or 1.0)

    def compare(self, k: int, derivative: Tensor) -> Verdict:
        """Compare a derivative of output k with its differences.

        Where central differences do not settle, or disagree, those of the sides decide: of a point next to a kink, one side sees
        the branch that the point is on. At a kink any derivative is right that is one of the two slopes or between them.
        """
        size = self._size(self.central, k)
        known, off = self._sure(self.central, k, size), (derivative - self.central.slopes[k]).abs()
        if bool((known & (off <= self.tol * size)).all()):
            return Verdict(_ratio(largest(off), size), True, False)
        low, high, decided, kink, size = self.bounds(k)
        outside = torch.maximum(low - derivative, derivative - high)[decided | ~torch.isfinite(derivative)]
        return Verdict(_ratio(largest(outside.clamp(min=0)), size), bool(decided.all()), bool(kink.any()))

    def compare_product(self, seeds: list[Tensor], product: float, size: float) -> Verdict:
        """Compare the product of a derivative of all outputs with seeds, which the backward pass gives, with that of differences.

        size: What the error is relative to.
        """
        if self.settled:
            off = abs(product - sum(float((u * s).sum()) for u, s in zip(seeds, self.central.slopes, strict=True)))
            if off <= self.tol * size:
                return Verdict(_ratio(off, size), True, False)
        least = most = 0.0
        compared, kinks = True, False
        for k, u in enumerate(seeds):
            low, high, decided, kink, _ = self.bounds(k)
            least += float(torch.minimum(u * low, u * high).sum())
            most += float(torch.maximum(u * low, u * high).sum())
            compared, kinks = compared and bool(decided.all()), kinks or bool(kink.any())
        outside = max(least - product, product - most, 0.0) if compared else 0.0
        return Verdict(_ratio(outside, size), compared, kinks)

    def bounds(self, k: int) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
        """Return the least and the largest slope that are right, whether there are such, where they differ, and their size."""
        size = max(self._size(found, k) for found in (self.central, *self.sides))
        sure = [self._sure(side, k, size) for side in self.sides]
        left, right = (side.slopes[k] for side in self.sides)
        middle = self.central.slopes[k]
        # A kink so near that central differences settle at the mean of its slopes: a side tells.
        fooled = [s & ((a - middle).abs() > self.tol * size) for s, a in zip(sure, (left, right), strict=True)]
        known = self._sure(self.central, k, size) & ~fooled[0] & ~fooled[1]
        both = sure[0] & sure[1]
        kink = ~known & both & ((left - right).abs() > self.tol * size)
        side = torch.where(sure[0], left, right)
        low = torch.where(known, middle, torch.where(both, torch.minimum(left, right), side))
        high = torch.where(known, middle, torch.where(both, torch.maximum(left, right), side))
        return low, high, known | sure[0] | sure[1], kink, size


def _ratio(error: float, size: float) -> float:
    return error / (size or 1.0)
