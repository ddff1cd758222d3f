"""States of particles, and the history of a roll-out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class MpmState:
    """Everything that is carried from step to step, of the particles of all bodies, one body after another."""

    x: Tensor
    """Positions (..., particles, dim) [m]."""
    v: Tensor
    """Velocities (..., particles, dim) [m/s]."""
    C: Tensor
    """Affine part of the velocities, their gradient (..., particles, dim * dim) [1/s], row by row."""
    laws: tuple[Tensor, ...]
    """Numbers that the law of each body keeps (..., particles of the body, n)."""

    def split(self, counts: Sequence[int]) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Return the tensors of every body."""
        parts = [t.split(list(counts), -2) for t in (self.x, self.v, self.C)]
        return [(x, v, C, s) for x, v, C, s in zip(*parts, self.laws, strict=True)]


@dataclass(frozen=True, eq=False)
class MpmHistory:
    """The history of a roll-out."""

    times: Tensor
    """Times of the frames (frames,) [s]: the beginning, and the end of every segment."""
    x: Tensor
    """Positions in every frame (..., frames, particles, dim) [m]."""
    v: Tensor
    """Velocities in every frame (..., frames, particles, dim) [m/s]."""
    final: MpmState
    """State at the end: another roll-out can go on from it."""
