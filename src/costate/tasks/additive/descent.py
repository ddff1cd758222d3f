"""Adam on a loss that takes seconds: with progress, and the best of what was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from costate.core.display import number
from costate.tasks.additive.problem import Tell


def descend(
    loss: Callable[[], Tensor],
    weights: Sequence[nn.Parameter],
    iterations: int,
    rate: float,
    tell: Tell,
    unit: str = "",
) -> list[float]:
    """Lower a loss; the weights end as those of the lowest loss seen. Returns the loss of every iteration, and the last."""
    optimiser = torch.optim.Adam(weights, lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(iterations, 1), eta_min=0.05 * rate)
    best, kept, losses = float("inf"), [w.detach().clone() for w in weights], []
    for k in range(iterations + 1):
        optimiser.zero_grad()
        value = loss()
        losses.append(float(value.detach()))
        if not losses[-1] < float("inf"):
            raise FloatingPointError(f"the loss is {losses[-1]} in iteration {k}; take a lower rate than {rate}")
        if losses[-1] < best:
            best, kept = losses[-1], [w.detach().clone() for w in weights]
        tell(f"iteration {k} of {iterations}, loss {number(losses[-1])}{unit}")
        if k < iterations:
            value.backward()
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        for w, x in zip(weights, kept, strict=True):
            w.copy_(x)
    return losses
