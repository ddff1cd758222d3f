"""Motions to fit networks to: states over time, and the loss of a world that is to follow them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from costate.sim.world import World


@dataclass(frozen=True, eq=False)
class Motions:
    """Motions of equal length under controls."""

    states: Tensor
    """States over time, (T + 1, B, nx)."""
    controls: Tensor
    """Controls, (T, B, nu)."""
    params: Mapping[str, Tensor] | None = None
    """Parameters of the world, name -> (B, n)."""

    def windows(self, length: int) -> Motions:
        """Return the motions cut into shorter ones, each from a measured state, (length + 1, B T // length, nx)."""
        count = self.controls.shape[0] // length
        if not count:
            raise ValueError(f"motions have {self.controls.shape[0]} steps; a window of {length} does not fit")
        starts = length * torch.arange(count)
        x = torch.cat([self.states[s : s + length + 1] for s in starts], 1)
        u = torch.cat([self.controls[s : s + length] for s in starts], 1)
        more = {k: v.repeat(count, *(1 for _ in v.shape[1:])) for k, v in (self.params or {}).items()}
        return Motions(x, u, more)

    def part(self, which: Tensor) -> Motions:
        """Return some of the motions. which: indices or flags (B,)."""
        more = {k: v[which] for k, v in (self.params or {}).items()}
        return Motions(self.states[:, which], self.controls[:, which], more)


def motion_loss(
    world: World, motions: Motions, weights: Tensor | None = None
) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """Return the loss of candidates: the mean square by which a roll-out from the first state misses the states measured, for
    every candidate and motion, (C, B).

    weights: one per entry of a state, (nx,); None: 1 / variance of the entry's change from the start, so that all count alike.
    """
    changes = motions.states[1:] - motions.states[:1]
    scale = 1 / changes.flatten(0, 1).var(0).clamp_min(1e-12) if weights is None else weights
    start, controls = motions.states[0], motions.controls[:, None]

    def loss(candidates: Mapping[str, Tensor]) -> Tensor:
        params = {f"network:{name}": w[:, None] for name, w in candidates.items()}
        found = world.rollout(start, controls, params={**(motions.params or {}), **params})
        return ((found[1:] - motions.states[1:, None]) ** 2 * scale).mean((0, -1))

    return loss
