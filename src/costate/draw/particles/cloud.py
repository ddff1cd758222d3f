"""Clouds of particles to show: where each is over time, and a number for its colour. Cells of a grid are particles that rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.draw.part.colors import colored

SPACING = 0.55
"""Radius of particles by the distance of neighbours that fill the box around them evenly."""
PLAIN = (-1.0, 2.0)
"""Limits of the colours of particles without numbers, which are 0 then."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Particles over time."""

    times: Array
    """Times of the frames (K,) [s], ascending."""
    positions: Array
    """Positions in every frame (K, N, 3) [m], or of all frames (1, N, 3); flat ones have y = 0."""
    values: Array
    """Numbers in every frame (K, N), or of all frames (1, N)."""
    radius: float
    """Radius of a particle, or half the edge of a cell [m]."""
    unit: str
    """Unit of the numbers."""
    limits: tuple[float, float]
    """Numbers at the ends of the scale of colours."""
    flat: bool
    """True if particles lie in a plane, which is shown from its front."""
    cells: bool = False
    """True if they are cells of a grid."""
    plain: bool = False
    """True if there are no numbers, and so no scale of colours."""

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self.times)

    @property
    def count(self) -> int:
        """Number of particles."""
        return self.positions.shape[1]

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Lowest and highest corner of the box around all particles (3,) [m]."""
        points = self.positions.reshape(-1, 3)
        return points.min(0) - self.radius, points.max(0) + self.radius

    @property
    def size(self) -> float:
        """Length of the diagonal of the box [m]."""
        return float(np.linalg.norm(self.box[1] - self.box[0]))

    @cached_property
    def metre(self) -> float:
        """Length of a metre in a drawing: a power of ten, with which clouds of every size are about as large as robots."""
        return float(10.0 ** -np.floor(np.log10(self.size / 0.3)))

    @property
    def corners(self) -> Array:
        """Corners of the box (8, 3) [m]."""
        return np.stack(np.meshgrid(*zip(*self.box, strict=True), indexing="ij"), -1).reshape(-1, 3)

    def at(self, frame: int) -> Array:
        """Return the positions in a frame (N, 3) [m]."""
        return self.positions[frame if len(self.positions) > 1 else 0]

    def numbers(self, frame: int) -> Array:
        """Return the numbers in a frame (N,)."""
        return self.values[frame if len(self.values) > 1 else 0]

    def colors(self, frame: int) -> np.ndarray:
        """Return the colours of all particles as sRGB bytes (N, 3)."""
        return colored(self.numbers(frame), *self.limits)

    def thinned(self, frames: int) -> Cloud:
        """Return the same with at most as many frames, the first and the last among them."""
        if self.frames <= frames:
            return self
        kept = np.linspace(0, self.frames - 1, max(frames, 2)).round().astype(int)
        fewer = {name: x[kept] for name in ("positions", "values") if len(x := getattr(self, name)) > 1}
        return replace(self, times=self.times[kept], **fewer)

    def frame_at(self, time: float) -> int:
        """Return the last frame that is not later than a time [s]; the first one before it."""
        return max(0, int(np.searchsorted(self.times, time, side="right")) - 1)


def cloud_of(
    times: Any,
    positions: Any,
    values: Any = None,
    *,
    radius: float | None = None,
    unit: str = "",
    limits: tuple[float, float] | None = None,
) -> Cloud:
    """Return particles to show, after a look at their shapes and numbers.

    Args:
        times: Times of the frames (K,) [s], ascending.
        positions: Positions (K, N, 2) or (K, N, 3) [m]; the second axis of flat ones points upwards.
        values: Numbers or kinds (N,) or (K, N), which choose colours; None: all have the same.
        radius: Radius of a particle [m]; None: one with which they fill the box around them at the beginning.
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest.
    """
    t, x = _array(times), _array(positions)
    if t.ndim != 1 or x.ndim != 3 or len(x) != len(t) or x.shape[2] not in (2, 3) or not x.size:
        raise ValueError(
            f"times have the shape {t.shape} and positions {x.shape}; expected (K,) and (K, N, 2) or (K, N, 3): where every "
            "particle is, for every time"
        )
    if not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ValueError("times of the frames must be finite and ascending")
    if not (finite := np.isfinite(x).all(2)).all():
        frame, particle = np.argwhere(~finite)[0]
        raise ValueError(
            f"particle {particle} is at {x[frame, particle].tolist()} in frame {frame}; expected finite numbers"
        )
    v = np.zeros((1, x.shape[1])) if values is None else np.atleast_2d(_array(values))
    if v.shape not in ((1, x.shape[1]), (len(t), x.shape[1])) or not np.isfinite(v).all():
        raise ValueError(
            f"values have the shape {v.shape}; expected ({x.shape[1]},) or {(len(t), x.shape[1])} finite numbers: one per particle"
        )
    if radius is None:
        span = np.ptp(x[0], axis=0)
        span = np.maximum(span, 0.01 * span.max() + 1e-9)
        radius = SPACING * float((span.prod() / x.shape[1]) ** (1 / x.shape[2]))
    flat = x.shape[2] == 2
    placed = np.stack([x[..., 0], np.zeros(x.shape[:2]), x[..., 1]], -1) if flat else x
    ends = PLAIN if values is None else limits_of(v, limits)
    return Cloud(t, placed, v, float(radius), unit, ends, flat, plain=values is None)


def grid_cloud(
    times: Any,
    values: Any,
    cell: float = 1.0,
    *,
    unit: str = "",
    limits: tuple[float, float] | None = None,
    axis: int = 2,
    index: int | None = None,
) -> Cloud:
    """Return the cells of a grid to show.

    Args:
        times: Times of the frames (K,) [s], ascending.
        values: Numbers of the cells (K, nx, ny) or (K, nx, ny, nz).
        cell: Edge of a cell [m].
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest.
        axis: Axis of a grid in 3D along which is looked.
        index: Layer of a grid in 3D that is shown; None: the mean of all layers.
    """
    t, v = _array(times), _array(values)
    if v.ndim not in (3, 4) or len(v) != len(t):
        raise ValueError(f"values have the shape {v.shape}; expected ({len(t)}, nx, ny) or ({len(t)}, nx, ny, nz)")
    if v.ndim == 4:
        v = v.mean(1 + axis) if index is None else v.take(index, 1 + axis)
    places = cell * (np.stack(np.meshgrid(*map(np.arange, v.shape[1:]), indexing="ij"), -1) + 0.5).reshape(1, -1, 2)
    made = cloud_of(t[:1], places, v[:1].reshape(1, -1), radius=cell / 2, unit=unit)
    flat = v.reshape(len(t), -1)
    if not np.isfinite(flat).all() or (np.diff(t) <= 0).any():
        raise ValueError("values of cells must be finite, and times ascending")
    return replace(made, times=t, values=flat, limits=limits_of(flat, limits), cells=True)


def limits_of(values: Array, limits: tuple[float, float] | None) -> tuple[float, float]:
    """Return the ends of a scale of colours: those given, or the least and the greatest number."""
    low, high = (float(values.min()), float(values.max())) if limits is None else map(float, limits)
    if limits is not None and not low < high:
        raise ValueError(f"limits are {limits}; expected a lower and a higher number")
    return low, high if high > low else low + 1.0


def _array(x: Any) -> Array:
    return np.asarray(x.detach().cpu() if hasattr(x, "detach") else x, float)
