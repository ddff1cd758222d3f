"""The grid that particles move through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from costate.continuum.checks import positive


@dataclass(frozen=True)
class MpmGrid:
    """Nodes at distances of dx, in 2D or 3D; the last axis runs fastest."""

    shape: tuple[int, ...]
    """Number of nodes along each axis."""
    dx: float
    """Distance of nodes [m]."""
    lower: tuple[float, ...] = ()
    """Position of the first node [m]; () is the origin."""

    def __post_init__(self) -> None:
        shape = tuple(int(n) for n in self.shape)
        if len(shape) not in (2, 3) or min(shape) < 8:
            raise ValueError(f"the grid has the shape {shape}; expected 2 or 3 numbers of nodes, 8 or more each")
        positive(dx=self.dx)
        lower = tuple(float(x) for x in self.lower) or (0.0,) * len(shape)
        if len(lower) != len(shape):
            raise ValueError(f"lower has {len(lower)} numbers; the grid has {len(shape)} axes")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "lower", lower)

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of nodes."""
        return int(np.prod(self.shape))

    @property
    def upper(self) -> tuple[float, ...]:
        """Position of the last node [m]."""
        return tuple(low + (n - 1) * self.dx for low, n in zip(self.lower, self.shape, strict=True))

    def nodes(self) -> np.ndarray:
        """Return the positions of all nodes (count, dim) [m]."""
        axes = [low + self.dx * np.arange(n) for low, n in zip(self.lower, self.shape, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, self.dim)

    def cells(self, x: ca.SX) -> ca.SX:
        """Return a position in cells from the first node."""
        return (x - ca.DM(self.lower)) / self.dx

    def outside(self, x: np.ndarray, margin: float) -> np.ndarray:
        """Return the rows of positions (n, dim) that are nearer than some cells to the edge of the grid, or not finite."""
        low, high = np.array(self.lower) + margin * self.dx, np.array(self.upper) - margin * self.dx
        return np.nonzero(~((x >= low) & (x <= high)).all(1))[0]


def cube(cells: int, dim: int = 2, size: float = 1.0) -> MpmGrid:
    """Return a grid over a square or cube of an edge [m] with its corner at the origin."""
    return MpmGrid((cells,) * dim, size / cells)


def parse_sides(sides: str | float | Mapping[str, str | float], dim: int) -> dict[str, str | float]:
    """Return what each side of the grid does: a word for all, or by the names -x, +x, ...; those not named slip."""
    names = [f"{sign}{axis}" for axis in "xyz"[:dim] for sign in "-+"]
    given = sides if isinstance(sides, Mapping) else dict.fromkeys(names, sides)
    unknown: Sequence[str] = [n for n in given if n not in names]
    if unknown:
        raise ValueError(f"no side '{unknown[0]}' of the grid; there are {', '.join(names)}")
    return {name: given.get(name, "slip") for name in names}
