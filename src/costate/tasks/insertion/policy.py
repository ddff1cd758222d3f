"""The controller: a network with one hidden layer, from an observation to six joint actions."""

from __future__ import annotations

import torch
from torch import nn

from costate.tasks.insertion.task import ACTION, OBSERVATION

Tensor = torch.Tensor


class Policy(nn.Module):
    """action = tanh(W2 tanh(W1 observation + b1) + b2): (..., 19) -> (..., 6), in [-1, 1]."""

    def __init__(self, hidden: int = 256, generator: torch.Generator | None = None):
        super().__init__()
        self.inner, self.outer = nn.Linear(OBSERVATION, hidden), nn.Linear(hidden, ACTION)
        with torch.no_grad():
            # The first layer as torch draws it; the last one near zero: an untrained arm hardly moves.
            for layer, bound in ((self.inner, OBSERVATION**-0.5), (self.outer, 0.1 * hidden**-0.5)):
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
            self.inner.bias.uniform_(-(OBSERVATION**-0.5), OBSERVATION**-0.5, generator=generator)

    def forward(self, observation: Tensor) -> Tensor:
        return torch.tanh(self.outer(torch.tanh(self.inner(observation))))
