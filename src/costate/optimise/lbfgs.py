"""L-BFGS for a batch of independent problems: the two-loop recursion and a line search by bisection."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]

ARMIJO, CURVATURE = 1e-4, 0.9
"""Constants of the weak Wolfe conditions: enough decrease, and a slope that has become flat enough."""
TRIALS = 30
"""Largest number of evaluations of a line search."""


class LBFGS:
    """L-BFGS steps of all problems side by side; each has its own memory and its own line search.

    Nocedal and Wright, Numerical Optimization, algorithm 7.4. The line search is that of Lewis and Overton 2013, which also works
    if the loss has kinks, as with contact.
    """

    def __init__(self, memory: int, first: float):
        self.memory, self.first = memory, first
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []
        self.scale: Tensor | None = None

    def step(
        self, objective: Objective, x: Tensor, value: Tensor, g: Tensor, active: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take one step of the active problems; return x, losses, gradients, and which problems moved."""
        d = self._direction(g)
        slope = _dot(d, g)
        downhill = slope < 0
        d = torch.where(downhill[:, None], d, -g)
        slope = torch.where(downhill, slope, -_dot(g, g))
        length = torch.ones_like(value)
        if not self.pairs:
            length = self.first / g.norm(dim=1).clamp(min=1e-300)
        x1, value1, g1, moved = _search(objective, x, value, g, d, slope, length, active)
        self._remember(x1 - x, g1 - g, moved)
        return x1, value1, g1, moved

    def _direction(self, g: Tensor) -> Tensor:
        q, alphas = g, []
        for s, y, rho in reversed(self.pairs):
            alphas.append(rho * _dot(s, q))
            q = q - alphas[-1][:, None] * y
        if self.scale is not None:
            q = q * self.scale[:, None]
        for (s, y, rho), alpha in zip(self.pairs, reversed(alphas), strict=True):
            q = q + (alpha - rho * _dot(y, q))[:, None] * s
        return -q

    def _remember(self, s: Tensor, y: Tensor, moved: Tensor) -> None:
        sy, yy = _dot(s, y), _dot(y, y)
        curved = moved & (sy > 1e-10 * s.norm(dim=1) * y.norm(dim=1))
        rho = torch.where(curved, 1 / torch.where(curved, sy, 1), 0)  # 0: the pair changes nothing
        self.pairs = [*self.pairs, (s, y, rho)][-self.memory :]
        before = torch.ones_like(sy) if self.scale is None else self.scale
        self.scale = torch.where(curved, sy / torch.where(curved, yy, 1), before)


def _search(
    objective: Objective, x: Tensor, value: Tensor, g: Tensor, d: Tensor, slope: Tensor, t: Tensor, active: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    low, high = torch.zeros_like(t), torch.full_like(t, float("inf"))
    found = x, value, g
    moved, searching = torch.zeros_like(active), active
    for _ in range(TRIALS):
        if not bool(searching.any()):
            break
        at = x + t[:, None] * d * searching[:, None]
        v, slope_g = objective(at)
        enough = v <= value + ARMIJO * t * slope  # false where v is NaN
        flat = _dot(slope_g, d) >= CURVATURE * slope
        take = searching & enough  # the longest step that is low enough, until one is also flat enough
        found = tuple(torch.where(_like(take, new), new, old) for new, old in zip((at, v, slope_g), found, strict=True))
        moved = moved | take
        low, high = torch.where(take, t, low), torch.where(enough, high, t)
        t = torch.where(torch.isinf(high), 2 * t, (low + high) / 2)
        searching = searching & ~(enough & flat)
    return *found, moved  # type: ignore[return-value]


def _like(mask: Tensor, value: Tensor) -> Tensor:
    return mask[:, None] if value.dim() == 2 else mask


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(1)
