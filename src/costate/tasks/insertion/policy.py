"""The controller: a network with one hidden layer, from an observation to six joint actions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from costate.tasks.insertion.scene import ACTION, OBSERVATION


class Policy(nn.Module):
    """action = tanh(W2 tanh(W1 observation + b1) + b2): (..., 19) -> (..., 6), in [-1, 1]."""

    def __init__(self, hidden: int = 256, generator: torch.Generator | None = None):
        super().__init__()
        sizes = (OBSERVATION, hidden), (hidden, ACTION)
        self.inner, self.outer = (nn.Linear(n, m, dtype=torch.float32) for n, m in sizes)
        with torch.no_grad():
            # Features that differ over millimetres; the last layer near zero: an untrained arm hardly moves.
            for layer, bound in ((self.inner, 2 * OBSERVATION**-0.5), (self.outer, 0.1 * hidden**-0.5)):
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
            self.inner.bias.uniform_(-(OBSERVATION**-0.5), OBSERVATION**-0.5, generator=generator)

    def forward(self, observation: Tensor) -> Tensor:
        return torch.tanh(self.outer(torch.tanh(self.inner(observation))))

    def layers(self) -> tuple[nn.Module, ...]:
        """Return the layers, in order."""
        return self.inner, nn.Tanh(), self.outer, nn.Tanh()

    def unrolled(self) -> Callable[[Tensor], Tensor]:
        """Return the same function for many calls with the same weights: tanh(x) = 2 sigmoid(2 x) - 1, of which torch has the
        faster one, and its factors go into the weights."""
        W1, b1 = 2 * self.inner.weight, 2 * self.inner.bias
        W2, b2 = 2 * self.outer.weight, self.outer.bias - self.outer.weight.sum(1)

        def act(observation: Tensor) -> Tensor:
            return torch.tanh(F.linear(torch.sigmoid(F.linear(observation, W1, b1)), W2, b2))

        return act
