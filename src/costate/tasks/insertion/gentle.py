"""A world whose gradients are shortened: hard contact makes some of them longer than all others together."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from costate.train.episode import Stepper


class Gentle:
    """A world in which no gradient with respect to an episode's state is longer than `longest`; what is not finite is dropped."""

    def __init__(self, world: Stepper, longest: float):
        self.world, self.longest, self.setup = world, longest, world.setup

    def step(self, state: Tensor, control: Tensor, params: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return the states after one control period, (B, nx)."""
        after = self.world.step(state, control, params)
        if after.requires_grad:
            after.register_hook(self._shortened)
        return after

    def _shortened(self, gradient: Tensor) -> Tensor:
        length = gradient.norm(dim=-1, keepdim=True)
        shorter = gradient * (self.longest / length.clamp(min=1e-30)).clamp(max=1.0)
        return torch.where(length.isfinite(), shorter, torch.zeros_like(gradient))
