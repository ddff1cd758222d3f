"""Networks of an actor and its critic: layers of `Linear`, `ELU` and `LayerNorm`, on normalised observations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

FLOAT = torch.float32
"""Number type of training, whatever torch's default."""
EPSILON = 1e-5
"""Least variance of an observation."""


def perceptron(
    inputs: int, hidden: Sequence[int], outputs: int, generator: torch.Generator | None = None
) -> nn.Sequential:
    """Return a network with random weights."""
    layers: list[nn.Module] = []
    for n, m in pairwise((inputs, *hidden)):
        layers += [nn.Linear(n, m, dtype=FLOAT), nn.ELU(), nn.LayerNorm(m, dtype=FLOAT)]
    layers.append(nn.Linear(hidden[-1], outputs, dtype=FLOAT))
    for layer in layers:
        if isinstance(layer, nn.Linear):
            bound = layer.in_features**-0.5
            nn.init.uniform_(layer.weight, -bound, bound, generator)
            nn.init.uniform_(layer.bias, -bound, bound, generator)
    return nn.Sequential(*layers)


LEAST, MOST = -5.0, 2.0
"""Bounds of the logarithm of a standard deviation that depends on the observation."""


class Actor(nn.Module):
    """A Gaussian policy, squashed: action = tanh(mean(observation) + standard deviation * noise). Called, it acts without noise.

    The network gives the heads: the means, and where it `sees_spread`, behind them, what gives the logarithms of the standard
    deviations between `LEAST` and `MOST`; else these are parameters.
    """

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(
        self,
        inputs: int,
        outputs: int,
        hidden: Sequence[int],
        generator: torch.Generator | None = None,
        sees_spread: bool = False,
    ):
        super().__init__()
        self.outputs = outputs
        self.net = perceptron(inputs, hidden, outputs * (1 + sees_spread), generator)
        self.log_std = None if sees_spread else nn.Parameter(torch.full((outputs,), -1.0, dtype=FLOAT))
        self.register_buffer("mean", torch.zeros(inputs, dtype=FLOAT))
        self.register_buffer("variance", torch.ones(inputs, dtype=FLOAT))
        self.register_buffer("count", torch.tensor(1e-4, dtype=FLOAT))

    @property
    def scale(self) -> Tensor:
        """Factor that makes observations of order one, (n,)."""
        return (self.variance + EPSILON).rsqrt()

    def forward(self, observation: Tensor) -> Tensor:
        heads = self.net((observation - self.mean) * self.scale)
        return torch.tanh(heads if self.log_std is not None else heads[..., : self.outputs])

    def log_spread(self, heads: Tensor) -> Tensor:
        """Return the logarithms of the standard deviations, (..., m) or (m,), of heads (..., k)."""
        if self.log_std is not None:
            return self.log_std
        return LEAST + (MOST - LEAST) / 2 * (1 + heads[..., self.outputs :].tanh())

    def spread(self, heads: Tensor) -> Tensor:
        """Return the standard deviations, without a gradient, (..., m) or (m,), of heads (..., k)."""
        return self.log_spread(heads.detach()).detach().exp()

    def act(self, heads: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions (..., m) of heads (..., k) with noise (..., m), and the logarithms of their densities (...)."""
        log_std = self.log_spread(heads)
        before = heads[..., : self.outputs] + log_std.exp() * noise
        squashing = 2 * (math.log(2) - before - softplus(-2 * before))  # log(1 - tanh^2), without loss of digits
        return before.tanh(), (-0.5 * (noise.square() + math.log(2 * math.pi)) - log_std - squashing).sum(-1)

    def learn_scale(self, seen: Tensor) -> None:
        """Take more observations (N, n) into mean and variance."""
        new, total = len(seen), self.count + len(seen)
        mean = seen.mean(0)
        off = mean - self.mean
        spread = self.variance * self.count + (seen - mean).square_().sum(0)
        self.variance.copy_((spread + off.square() * self.count * new / total) / total)
        self.mean += off * new / total
        self.count.copy_(total)
