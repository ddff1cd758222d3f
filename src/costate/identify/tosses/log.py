"""Recordings of tosses: poses of one free body at even times."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from costate.core.arrays import Array
from costate.identify.tables import LogError, read_table
from costate.identify.tosses.turns import conjugate, rotated, turn_between

POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
RATES = ("vx", "vy", "vz", "wx", "wy", "wz")
JITTER = 0.05
"""Largest difference between two time steps of a file, relative to their median."""
UNIT = 0.01
"""Largest error of the length of a quaternion; smaller ones are taken off."""


@dataclass(frozen=True, eq=False)
class Tosses:
    """Recorded motions of one free body."""

    states: Tensor
    """States as a world has them: position, quaternion x, y, z, w, velocity and angular velocity in body axes; shape (N, 13)."""
    starts: Array
    """First row of each toss, and the end of the last one, shape (n + 1,)."""
    dt: float
    """Time between two rows [s]."""
    source: str = "arrays"
    """Name of the file."""
    notes: list[str] = field(default_factory=list)
    """Notes on what was missing or repaired."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Array:
        """Number of rows of each toss, shape (n,)."""
        return np.diff(self.starts)

    def windows(self, tosses: Array, first: int, rows: int) -> Tensor:
        """Return rows first ... first + rows - 1 of tosses that have them, shape (rows, n, 13)."""
        at = torch.as_tensor(self.starts[tosses] + first)[None] + torch.arange(rows)[:, None]
        return self.states[at]


def read_tosses(path: str | Path) -> Tosses:
    """Read tosses from a file.

    NPZ: `state` (N, 13) with position [m], quaternion w, x, y, z, velocity in world axes [m/s] and angular velocity in body axes
    [rad/s] (or (N, 7): poses alone); `starts` (n + 1,), the first row of each toss and the end; `dt` [s].

    CSV or Parquet: columns toss (a number that changes from toss to toss), t [s], x, y, z, qw, qx, qy, qz, and perhaps vx, vy, vz
    (world axes), wx, wy, wz (body axes).
    """
    path = Path(path)
    table, notes = read_table(path)
    if path.suffix == ".npz":
        missing = [name for name in ("state", "starts", "dt") if name not in table]
        if missing:
            raise LogError(f"{path}: has no array '{missing[0]}'; expected state (N, 7 or 13), starts (n + 1,) and dt")
        rows, starts, dt = table["state"], table["starts"].astype(int), float(table["dt"])
    else:
        rows, starts, dt = _from_columns(path, table)
    return tosses_of(rows, starts, dt, str(path), notes)


def tosses_of(rows: Array, starts: Array, dt: float, source: str = "arrays", notes: list[str] | None = None) -> Tosses:
    """Return tosses from rows (N, 7 or 13) in the order of `read_tosses`, after checks."""
    notes, rows = list(notes or []), np.array(rows, float)
    if rows.ndim != 2 or rows.shape[1] not in (7, 13):
        raise LogError(
            f"{source}: rows have shape {rows.shape}; expected 7 columns (position, quaternion w x y z) or 13"
        )
    if not dt > 0 or len(starts) < 2 or starts[0] < 0 or starts[-1] > len(rows) or np.diff(starts).min() < 3:
        raise LogError(
            f"{source}: expected dt > 0, and tosses of at least 3 rows whose starts rise and end in the file"
        )
    bad = np.flatnonzero(~np.isfinite(rows).all(1))
    if len(bad):
        raise LogError(
            f"{source}: row {bad[0] + 1} has cells without numbers ({len(bad)} rows have); leave out its toss"
        )
    length = np.linalg.norm(rows[:, 3:7], axis=1)
    wrong = np.flatnonzero(np.abs(length - 1) > UNIT)
    if len(wrong):
        raise LogError(f"{source}: the quaternion of row {wrong[0] + 1} has length {length[wrong[0]]:.3g}; expected 1")
    position, turn = torch.tensor(rows[:, :3]), torch.tensor(rows[:, [4, 5, 6, 3]] / length[:, None])
    if rows.shape[1] == 7:
        notes.append("velocities were not logged: differences of neighbouring poses are used")
        v, w = _differences(position, turn, starts, dt)
    else:
        v, w = torch.tensor(rows[:, 7:10]), torch.tensor(rows[:, 10:13])
    states = torch.cat([position, turn, rotated(conjugate(turn), v), w], 1)
    return Tosses(states, np.asarray(starts, int), dt, source, notes)


def _from_columns(path: Path, table: dict[str, Array]) -> tuple[Array, Array, float]:
    missing = [name for name in ("toss", "t", *POSE) if name not in table]
    if missing:
        raise LogError(f"{path}: has no column '{missing[0]}'; expected toss, t, {', '.join(POSE)}")
    names = (*POSE, *RATES) if all(name in table for name in RATES) else POSE
    toss, t = table["toss"], table["t"]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(toss)) + 1, [len(toss)]])
    step = np.diff(t)[np.diff(toss) == 0]
    dt = float(np.median(step)) if len(step) else 0.0
    if not dt > 0 or np.abs(step - dt).max() > JITTER * dt:
        raise LogError(
            f"{path}: rows of a toss are {step.min(initial=0):g} to {step.max(initial=0):g} s apart; expected even times"
        )
    return np.stack([table[name] for name in names], 1), starts, dt


def _differences(position: Tensor, turn: Tensor, starts: Array, dt: float) -> tuple[Tensor, Tensor]:
    """Return velocities in world axes and angular velocities in body axes from the row before; first rows have the next one's."""
    v, w = torch.zeros_like(position), torch.zeros_like(position)
    v[1:] = (position[1:] - position[:-1]) / dt
    w[1:] = turn_between(turn[:-1], turn[1:]) / dt
    first = torch.as_tensor(np.asarray(starts[:-1], int))
    v[first], w[first] = v[first + 1], w[first + 1]
    return v, w
