"""The best of several policies, by what they earn.

Looks without noise decide which policy a training ends with, since one that runs can be lost again within a hundred iterations
(windowed.py); trials decide which one it goes on with (bptt.py).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Best:
    """The weights of the policy that has earned most, and how much that was."""

    def __init__(self, name: str, more: dict[str, Tensor]):
        """Take up what a checkpoint has kept under a name; nothing at the start."""
        self.prefix = f"{name}."
        kept = {key.removeprefix(self.prefix): t.clone() for key, t in more.items() if key.startswith(self.prefix)}
        self.score = kept.pop("score", torch.tensor(float("-inf"), dtype=torch.float64))
        self.weights = kept

    def offer(self, score: float, policy: nn.Module) -> None:
        """Keep a policy if it has earned more than all before."""
        if score > float(self.score):
            self.score = torch.tensor(score, dtype=torch.float64)
            self.weights = {name: t.detach().clone() for name, t in policy.state_dict().items()}

    def kept(self) -> dict[str, Tensor]:
        """Return what a checkpoint keeps; nothing, if nothing was offered yet."""
        kept = self.weights | ({"score": self.score} if self.weights else {})
        return {f"{self.prefix}{name}": t for name, t in kept.items()}
