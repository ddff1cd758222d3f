"""Descent of many candidates at once: Adam with a proximal step, and hops out of local minima.

    minimise  loss(w) / loss(silence) + penalty * sum of column lengths + ridge * |upper weights|^2

Basin hopping: after every descent each candidate is disturbed and descends again, and keeps the better one of its two ends. All
candidates are rows of one batch, so that the compiled step runs them side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from costate.optimise.discovery.candidates import Candidates
from costate.optimise.solution import Run

Loss = Callable[[dict[str, Tensor]], Tensor]
"""Function of network -> weights (C, size) that returns losses (C,), or (C, samples)."""

BETAS, EPSILON = (0.9, 0.999), 1e-12


@dataclass(frozen=True, eq=False)
class Descent:
    """The way in which candidates descend."""

    candidates: Candidates
    loss: Loss
    unit: float
    """Loss of silent networks: losses are told in this unit."""
    lr: float
    ridge: float
    run: Run

    def __call__(self, rows: Tensor, steps: int, penalty: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows (C, n) with the least objective on the way, and that objective (C,). penalty: (C, 1); mask: 0 where a weight
        stays zero, (C, n)."""
        rows = rows * mask
        m, s = torch.zeros_like(rows), torch.zeros_like(rows)
        best, least = rows, torch.full((len(rows),), torch.inf, dtype=rows.dtype)
        for t in range(1, steps + 1):
            value, g = self.gradient(rows)
            value = value + (penalty * self.candidates.lengths(rows)).sum(-1)
            better = value < least
            best, least = torch.where(better[:, None], rows, best), torch.where(better, value, least)
            lr = self.lr * (1 - 0.9 * t / steps)
            g = torch.where(torch.isfinite(g), g, 0) * mask
            m, s = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * s + (1 - BETAS[1]) * g**2
            step = lr * (m / (1 - BETAS[0] ** t)) / ((s / (1 - BETAS[1] ** t)).sqrt() + EPSILON)
            lost = ~torch.isfinite(value)[:, None]
            rows = torch.where(lost, best, self.candidates.shrunk(rows - step, lr * penalty)) * mask
            if self.run.note(least.min()):
                break
        return best, least

    def gradient(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the smooth part of the objective (C,) and its gradient (C, n)."""
        self.run.evaluations += 1
        x = rows.detach().requires_grad_()
        value = self.values(x).mean(-1) / self.unit + self.ridge * (x[:, self.candidates.upper] ** 2).sum(-1)
        (g,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), g

    def values(self, rows: Tensor) -> Tensor:
        """Return losses (C, samples)."""
        found = self.loss(self.candidates.params(rows))
        if found.dim() not in (1, 2) or len(found) != len(rows):
            shape, n = tuple(found.shape), len(rows)
            raise ValueError(f"the loss has shape {shape} for {n} candidates; expected ({n},) or ({n}, samples)")
        return found if found.dim() == 2 else found[:, None]

    def hopping(
        self, rows: Tensor, steps: int, penalty: Tensor, mask: Tensor, hops: int, size: float, seed: int
    ) -> tuple[Tensor, Tensor]:
        """Return rows and objectives after a descent and some hops."""
        random = torch.Generator().manual_seed(seed)
        best, least = self(rows, steps, penalty, mask)
        for _ in range(hops):
            noise = size * torch.randn(best.shape, generator=random, dtype=best.dtype)
            there, value = self(best + noise, steps, penalty, mask)
            better = value < least
            best, least = torch.where(better[:, None], there, best), torch.where(better, value, least)
        return best, least
