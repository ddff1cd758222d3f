"""A world whose gradients are shortened, and that tells by how much: hard contact makes some longer than all others together."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from costate.train.episode import Stepper


class Gentle:
    """A world in which no gradient with respect to an episode's state is longer than `longest`; what is not finite is dropped. Both
    are counted: `told` says what training did not see."""

    def __init__(self, world: Stepper, longest: float):
        self.world, self.longest, self.setup = world, longest, world.setup
        self.seen = self.shortened = self.dropped = 0
        self.largest = 0.0

    def step(self, state: Tensor, control: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the states after one control period, (B, nx)."""
        after = self.world.step(state, control, params)
        if after.requires_grad:
            after.register_hook(self._shortened)
        return after

    def _shortened(self, gradient: Tensor) -> Tensor:
        length = gradient.norm(dim=-1, keepdim=True)
        finite = length.isfinite()
        self.seen += length.numel()
        self.dropped += int((~finite).sum())
        self.shortened += int((finite & (length > self.longest)).sum())
        self.largest = max(self.largest, float(torch.where(finite, length, 0).max()))
        shorter = gradient * (self.longest / length.clamp(min=1e-30)).clamp(max=1.0)
        return torch.where(finite, shorter, torch.zeros_like(gradient))

    def told(self) -> str | None:
        """Return what was hidden from training in a sentence; None if nothing was."""
        if not self.shortened and not self.dropped:
            return None
        return (
            f"gradients through contact: {self.shortened:,} of {self.seen:,} were shortened to {self.longest:g} (--state-clip), "
            f"the longest from {self.largest:.2g}; {self.dropped:,} were not finite and were dropped. costate.diagnose names the "
            "causes in an episode"
        )
