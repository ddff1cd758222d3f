"""The policy: two layers from what is seen to joint rates and proposed contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from costate.train.episode import Controller

if TYPE_CHECKING:
    from costate.tasks.manipulation.execute import Executor


class Proposer(nn.Module):
    """action = W2 tanh(W1 seen + b1) + b2; joint rates are squashed later, in the model and by the executor."""

    def __init__(self, inputs: int, first: Tensor, hidden: int = 80, generator: torch.Generator | None = None):
        """Make a policy that proposes `first` (na,) whatever it sees, but for little."""
        super().__init__()
        self.into = nn.Linear(inputs, hidden, dtype=torch.float64)
        self.out = nn.Linear(hidden, len(first), dtype=torch.float64)
        with torch.no_grad():
            self.into.weight.normal_(0, inputs**-0.5, generator=generator)
            self.into.bias.zero_()
            self.out.weight.normal_(0, 0.01 * hidden**-0.5, generator=generator)
            self.out.bias.copy_(first)

    def forward(self, seen: Tensor) -> Tensor:
        """Return actions (..., na) of what is seen (..., n)."""
        return self.out(torch.tanh(self.into(seen)))


class HandPolicy(Proposer):
    """A proposer that acts in the full world, through its executor."""

    def __init__(self, executor: Executor, first: Tensor, hidden: int, generator: torch.Generator | None = None):
        super().__init__(executor.step.inputs, first, hidden, generator)
        self.executor = executor

    def begin(self) -> Controller:
        """Return the function that acts in one episode: from what is measured (B, 9) to the targets of servos."""
        return self.executor.begin(self)
