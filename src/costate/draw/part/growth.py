"""Growing parts to show: a mesh, and a number at every node that changes over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from costate.continuum.mesh import HexMesh
from costate.continuum.toolpath import ToolPath
from costate.core.arrays import Array
from costate.draw.part.colors import colored

LASER = 0.12
"""Length of the laser in a drawing, by the size of the part."""


@dataclass(frozen=True, eq=False)
class Growth:
    """A part that grows, and a number at every node, such as its temperature."""

    mesh: HexMesh
    times: Array
    """Times of the frames (K,) [s], ascending."""
    values: Array
    """Numbers at the nodes in every frame (K, N); those of nodes that are not born yet are the least of all."""
    unit: str
    """Unit of the numbers."""
    limits: tuple[float, float]
    """Numbers at the ends of the scale of colours."""
    path: ToolPath | None = None
    """Path of the laser; None: it is not drawn."""

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(self.times)

    @cached_property
    def size(self) -> float:
        """Length of the diagonal of the box around the part [m]."""
        low, high = self.box
        return float(np.linalg.norm(high - low))

    @cached_property
    def used(self) -> Array:
        """Nodes that belong to an element."""
        return np.unique(self.mesh.elements)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Lowest and highest corner of the box around the part (3,) [m]."""
        inside = self.mesh.nodes[self.used]
        return inside.min(0), inside.max(0)

    @property
    def laser_length(self) -> float:
        """Length of the laser in a drawing [m]; 0 if there is no path."""
        return 0.0 if self.path is None else LASER * self.size

    @cached_property
    def outline(self) -> Array:
        """Points around the part and the laser (n, 3) [m]: those that are farthest in many directions."""
        spots, on = self.spots
        points = np.concatenate([self.mesh.nodes[self.used], spots[on] + np.array([0, 0, self.laser_length])])
        ways = np.stack(np.meshgrid(*[np.linspace(-1, 1, 7)] * 3), -1).reshape(-1, 3)
        return points[np.unique((points @ ways.T).argmax(0))]

    @cached_property
    def metre(self) -> float:
        """Length of a metre in a drawing: a power of ten, with which parts of every size are about as large as robots."""
        return float(10.0 ** -np.floor(np.log10(self.size / 0.3)))

    @cached_property
    def alive(self) -> list[int]:
        """Number of elements alive in each frame."""
        return [self.mesh.alive(t) for t in self.times]

    @cached_property
    def spots(self) -> tuple[Array, Array]:
        """Positions of the laser (K, 3) [m], and whether it is on (K,); off if there is no path."""
        if self.path is None:
            return np.zeros((self.frames, 3)), np.zeros(self.frames, bool)
        return self.path.at(self.times)

    def colors(self, frame: int) -> np.ndarray:
        """Return the colours of all nodes as sRGB bytes (N, 3)."""
        return colored(self.values[frame], *self.limits)

    def thinned(self, frames: int) -> Growth:
        """Return the same with at most as many frames, the first and the last among them."""
        if self.frames <= frames:
            return self
        kept = np.linspace(0, self.frames - 1, frames).round().astype(int)
        return replace(self, times=self.times[kept], values=self.values[kept])

    def frame_at(self, time: float) -> int:
        """Return the last frame that is not later than a time [s]; the first one before it."""
        return max(0, int(np.searchsorted(self.times, time, side="right")) - 1)


def growth_of(
    mesh: HexMesh,
    times: Any,
    values: Any,
    *,
    unit: str = "K",
    limits: tuple[float, float] | None = None,
    path: ToolPath | None = None,
) -> Growth:
    """Return a growing part to show, after a look at its shapes and numbers.

    Args:
        mesh: Elements in the order of their births.
        times: Times of the frames (K,) [s], ascending.
        values: Numbers at the nodes (K, N); those of nodes that are not born yet are not looked at.
        unit: Unit of the numbers.
        limits: Numbers at the ends of the scale of colours; None: the least and the greatest of nodes that are born.
        path: Path of the laser, which is drawn where it is on.
    """
    t, v = (np.asarray(x.detach().cpu() if hasattr(x, "detach") else x, float) for x in (times, values))
    if t.ndim != 1 or not len(t) or v.shape != (len(t), len(mesh.nodes)):
        raise ValueError(
            f"times have the shape {t.shape} and values {v.shape}; expected (K,) and (K, {len(mesh.nodes)}): a row of numbers at "
            "the nodes for every time"
        )
    if not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ValueError("times of the frames must be finite and ascending")
    born = mesh.node_birth <= t[:, None]
    if not born.any():
        raise ValueError(f"no element is alive up to {t[-1]:g} s; the first is born at {mesh.birth.min():g} s")
    if (bad := born & ~np.isfinite(v)).any():
        frame, node = np.argwhere(bad)[0]
        raise ValueError(f"the value of node {node} at {t[frame]:g} s is {v[frame, node]}; expected a finite number")
    seen = v[born]
    low, high = (float(seen.min()), float(seen.max())) if limits is None else map(float, limits)
    if limits is not None and not low < high:
        raise ValueError(f"limits are {limits}; expected a lower and a higher number")
    return Growth(mesh, t, np.where(born, v, seen.min()), unit, (low, high if high > low else low + 1.0), path)
