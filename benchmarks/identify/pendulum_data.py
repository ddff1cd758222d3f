"""Recordings of pendulums as angles at even times: Schmidt and Lipson's files, and the films of IBM's double pendulum."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

FILM = 400.0
"""Frames per second of IBM's films."""


@dataclass(frozen=True, eq=False)
class Swing:
    """A recorded motion."""

    angles: Tensor
    """Angles of the arms from the direction of gravity, unwrapped [rad], shape (N, n); anything where nothing was recorded."""
    seen: Tensor
    """Mask of the rows that were recorded, shape (N,)."""
    dt: float
    """Time step [s]."""
    lengths: tuple[float, ...]
    """Lengths of the arms, the first one is 1, shape (n,)."""
    unit: float = 1.0
    """Length of the first arm in the unit of the file, for errors of the tip [pixels]; 1: that of the arm."""

    def windows(self, rows: int, every: int, first: int = 0, last: int | None = None) -> tuple[Tensor, Tensor]:
        """Return windows (rows, n windows, n) whose first four rows were recorded, and which rows were (rows, n windows)."""
        end = len(self.angles) if last is None else last
        at = [k for k in range(first, end - rows + 1, every) if bool(self.seen[k : k + 4].all())]
        index = torch.tensor(at)[None] + torch.arange(rows)[:, None]
        return self.angles[index], self.seen[index]

    def tips(self, angles: Tensor) -> Tensor:
        """Return the positions of the last mark, (..., 2), in the unit of the file."""
        arms = [
            length * torch.stack([angles[..., k].cos(), angles[..., k].sin()], -1)
            for k, length in enumerate(self.lengths)
        ]
        return self.unit * torch.stack(arms).sum(0)


def film(path: Path) -> Swing:
    """Read a film: pixels x, y of pivot, joint and tip, one row a frame. Gravity points along x of these pictures."""
    marks = np.loadtxt(path, delimiter=",").reshape(-1, 3, 2)
    arms = np.diff(marks, axis=1)
    angles = np.unwrap(np.arctan2(arms[..., 1], arms[..., 0]), axis=0)
    lengths = np.linalg.norm(arms, axis=-1).mean(0)
    seen = torch.ones(len(angles), dtype=torch.bool)
    return Swing(torch.tensor(angles), seen, 1 / FILM, tuple(lengths / lengths[0]), float(lengths[0]))


def tracked(path: Path, arms: int) -> list[Swing]:
    """Read angles that were tracked, one motion for each trial; rows that are missing in time are left open."""
    table = np.loadtxt(path, comments="%")
    motions = []
    for trial in np.unique(table[:, 0]):
        rows = table[table[:, 0] == trial]
        dt = float(np.median(np.diff(rows[:, 1])))
        tick = np.rint((rows[:, 1] - rows[0, 1]) / dt).astype(int)
        angles = np.zeros((tick[-1] + 1, arms))
        angles[tick] = rows[:, 2 : 2 + arms]
        seen = np.zeros(len(angles), bool)
        seen[tick] = True
        motions.append(Swing(torch.tensor(angles), torch.tensor(seen), dt, (1.0,) * arms))
    return motions
