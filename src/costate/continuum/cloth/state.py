"""States of cloth, and the history of a roll-out."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class ClothState:
    """Everything that is carried from step to step, of the points of all bodies, one body after another."""

    x: Tensor
    """Positions (..., points, 3) [m]."""
    v: Tensor
    """Velocities (..., points, 3) [m/s]."""
    a: Tensor | None = None
    """Accelerations in the last step (..., points, 3) [m/s^2], with which the next solve begins; nothing else depends on them."""


@dataclass(frozen=True, eq=False)
class ClothHistory:
    """The history of a roll-out."""

    times: Tensor
    """Times of the frames (frames,) [s]: the beginning, and the end of every step (of every segment, where memory is short)."""
    x: Tensor
    """Positions in every frame (..., frames, points, 3) [m]."""
    final: ClothState
    """State at the end: another roll-out can go on from it."""
    told: Tensor
    """Numbers about the solve of every step (..., steps, 4): converged, residual by weight, iterations of conjugate gradients,
    steps of Newton's method."""
