"""Periodic motions as Fourier series.

q(t) = centre + sum over k of A_k sin(k w t) + B_k (cos(k w t) - 1)        w = 2 pi / period
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from costate.core.arrays import Array
from costate.core.files import write_text


@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic motion of a robot, and the parameters that it shows."""

    joints: list[str]
    period: float
    centre: Array
    """Configuration in which it starts and ends, shape (n,)."""
    sine: Array
    """Coefficients A, shape (harmonics, n)."""
    cosine: Array
    """Coefficients B, shape (harmonics, n)."""
    rank: int
    """Number of combinations of parameters that the motion shows."""
    structural_rank: int
    """Number of combinations that any motion could show."""
    condition: float
    """Condition number of the base regressor, columns of unit length."""
    history: list[float]
    """Objective per iteration of the best start."""

    @property
    def harmonics(self) -> int:
        return len(self.sine)

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations at times t (N,), each (N, n)."""
        return motion_at(np.asarray(t, float), self.period, self.centre, self.sine, self.cosine)

    def sample(self, rate: float, periods: int = 1) -> dict[str, Array]:
        """Return t (N,), q, v and a (N, n) at a rate [1/s]."""
        t = np.arange(round(self.period * periods * rate)) / rate
        return dict(zip(("t", "q", "v", "a"), (t, *self.at(t)), strict=True))

    def save_csv(self, path: str | Path, rate: float, periods: int = 1) -> None:
        """Write columns t, q_JOINT, v_JOINT, a_JOINT, for the robot's controller."""
        found = self.sample(rate, periods)
        names = ["t", *(f"{x}_{joint}" for x in "qva" for joint in self.joints)]
        table = np.concatenate([found["t"][:, None], found["q"], found["v"], found["a"]], 1)
        lines = [",".join(names), *(",".join(f"{x:.10g}" for x in row) for row in table)]
        write_text(Path(path), "\n".join(lines) + "\n")


def motion_at(t: Any, period: float, centre: Any, sine: Any, cosine: Any) -> tuple[Any, Any, Any]:
    """Return positions, velocities and accelerations (N, n) at times t (N,), as arrays or tensors as t is."""
    lib: Any = torch if isinstance(t, Tensor) else np
    w = 2 * np.pi / period * lib.arange(1, len(sine) + 1)
    s, c = lib.sin(t[:, None] * w), lib.cos(t[:, None] * w)
    q = centre + s @ sine + (c - 1) @ cosine
    return q, (c * w) @ sine - (s * w) @ cosine, -(s * w**2) @ sine - (c * w**2) @ cosine
