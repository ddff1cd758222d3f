"""The policy that a task has unless it gives another: two hidden layers, from an observation to actions in [-1, 1]."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from costate.core.tensors import aligned
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

    A policy with memory has a method `memory()` that returns the tensors (n,) an episode begins with; its forward takes them behind
    the observation and returns the action and the next ones. Or it has `begin()`, which returns a function that remembers (but
    cannot be exported). A policy that is faster with its weights prepared once has `unrolled()`, which training uses. Any other
    policy acts itself.

    Here observations enter, and gradients come back: both are `aligned`, so that bits do not depend on where a task has put them.
    """
    act = _acting(policy, training)

    def act_aligned(observation: Tensor) -> Tensor:
        action = act(aligned(observation))
        if action.requires_grad:
            action.register_hook(aligned)
        return action

    return act_aligned


def _acting(policy: Any, training: bool) -> Controller:
    for name in ("unrolled", "begin") if training else ("begin",):
        if hasattr(policy, name):
            return getattr(policy, name)()
    return remembering(policy) if hasattr(policy, "memory") else policy


def align_weights(policy: nn.Module) -> None:
    """Move weights that are views of something else to places of their own, see `aligned`."""
    for p in policy.parameters():
        p.data = aligned(p.data)


def remembering(policy: Any) -> Controller:
    """Return a policy with memory as a function of observations alone, from the start of an episode."""
    kept: list[Tensor] = []

    def act(observation: Tensor) -> Tensor:
        start = (
            [m.to(observation.dtype).expand(*observation.shape[:-1], -1) for m in policy.memory()] if not kept else []
        )
        action, *kept[:] = policy(observation, *(kept or start))
        return action

    return act
