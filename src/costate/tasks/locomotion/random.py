"""Random numbers of episodes."""

from __future__ import annotations

import torch
from torch import Tensor


def uniform(batch: int, size: int, generator: torch.Generator) -> Tensor:
    """Return random numbers between -1 and 1, (batch, size)."""
    return 2 * torch.rand(batch, size, generator=generator) - 1
