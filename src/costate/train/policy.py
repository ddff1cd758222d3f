"""The policy that a task has unless it gives another: two hidden layers, from an observation to actions in [-1, 1]."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from costate.train.episode import Controller


class Policy(nn.Sequential):
    """action = tanh(W3 tanh(W2 tanh(W1 observation + b1) + b2) + b3)."""

    def __init__(self, inputs: int, outputs: int, hidden: int = 64, generator: torch.Generator | None = None):
        sizes = (inputs, hidden, hidden, outputs)
        linear = [nn.Linear(n, m, dtype=torch.float32) for n, m in pairwise(sizes)]
        super().__init__(*(layer for each in linear for layer in (each, nn.Tanh())))
        with torch.no_grad():
            for each in linear:
                # The last layer is near zero: an untrained robot hardly moves.
                bound = (0.1 if each is linear[-1] else 1.0) * each.in_features**-0.5
                each.weight.uniform_(-bound, bound, generator=generator)
                each.bias.zero_()


def acting(policy: nn.Module, training: bool = False) -> Controller:
    """Return the function that acts in one roll-out.

    A policy with memory has a method `begin()` that returns a function which remembers; a policy that is faster with its weights
    prepared once has `unrolled()`, which training uses; any other policy acts itself.
    """
    for name in ("unrolled", "begin") if training else ("begin",):
        if hasattr(policy, name):
            return getattr(policy, name)()
    return policy
