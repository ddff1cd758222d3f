"""The best of several policies.

A policy that succeeds can be lost again within a hundred iterations, so looks at it decide which one a training ends with
(trainer.py); trials decide which one back-propagation goes on with (reinforce/bptt.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Best:
    """The weights of the policy with the highest score so far, that score, and the iteration after which it had it."""

    def __init__(self, name: str, more: Mapping[str, Tensor]):
        """Take up what a checkpoint has kept under a name; nothing at the start."""
        self.prefix = f"{name}."
        kept = {key.removeprefix(self.prefix): t.clone() for key, t in more.items() if key.startswith(self.prefix)}
        self.score: tuple[float, ...] = tuple(kept.pop("score").tolist()) if kept else ()
        self.iteration = int(kept.pop("iteration")) if kept else 0
        self.weights = kept

    def offer(self, policy: nn.Module, iteration: int, *score: float) -> None:
        """Keep a policy if its score is higher than all before; later numbers of a score count where earlier ones are equal."""
        comparable = tuple(s if s == s else -torch.inf for s in map(float, score))
        if comparable > self.score:
            self.score, self.iteration = comparable, iteration
            self.weights = {name: t.detach().clone() for name, t in policy.state_dict().items()}

    def give(self, policy: nn.Module) -> None:
        """Put the best weights into a policy."""
        policy.load_state_dict(self.weights)

    def kept(self) -> dict[str, Tensor]:
        """Return what a checkpoint keeps; nothing, if nothing was offered yet."""
        told = {
            "score": torch.tensor(self.score, dtype=torch.float64),
            "iteration": torch.tensor(self.iteration, dtype=torch.int64),
        }
        return {f"{self.prefix}{name}": t for name, t in (self.weights | told).items()} if self.weights else {}
