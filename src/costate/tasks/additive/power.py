"""The laser's power as a small network of time, as published: two layers of 50."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

PUBLISHED = (10.0, 5.0, 2.0)
"""Factors of the first weights of each layer, on top of He's, in the published notebook: most units begin where they are flat."""
LIVELY = (10.0, 1.0, 1.0)
"""Factors with which a random curve goes up and down between its limits."""


class PowerCurve(nn.Module):
    """Share of the largest power, between 0 and 1, over time."""

    def __init__(self, seed: int, dtype: torch.dtype = torch.float64, scales: tuple[float, ...] = LIVELY):
        super().__init__()
        sizes = (3, 50, 50, 1)
        random = torch.Generator().manual_seed(seed)
        layers = [nn.Linear(a, b, dtype=dtype) for a, b in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        for layer, scale in zip(layers, scales, strict=True):
            n = layer.in_features
            with torch.no_grad():
                first = torch.randn(layer.weight.shape, generator=random, dtype=torch.float64)
                layer.weight.copy_(scale * (2 / n) ** 0.5 * first)
                layer.bias.zero_()

    def forward(self, share: Tensor) -> Tensor:
        """Return the share of the power (...) at shares of the duration (...), from 0 to 1."""
        t = share[..., None] - 0.5
        x = torch.cat([torch.ones_like(t), t, t * t], -1)
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return (torch.tanh(self.layers[-1](x))[..., 0] + 1) / 2
