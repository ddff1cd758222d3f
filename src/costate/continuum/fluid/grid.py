"""Staggered grids: cells with numbers at their centres, and velocities on their faces.

A cell holds the velocity components through its lower faces: component a of cell i belongs to the face between i - e_a and i. The
grid is periodic: what leaves on one side enters on the other. Walls are solid cells, so a closed box is a grid with a border of
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from costate.continuum.checks import positive

Offset = tuple[int, ...]
"""Cells to go along each axis."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells of a box, some of them solid, some open to still air."""

    shape: tuple[int, ...]
    """Number of cells along each axis: two or three numbers."""
    cell: float
    """Length of the edge of a cell [m]."""
    solid: Any = None
    """Cells that are solid (*shape), as truth values; None: none."""
    open: Any = None
    """Cells in which the pressure is that of the air around (*shape): fluid goes in and out; None: none."""

    def __post_init__(self) -> None:
        shape = tuple(int(n) for n in self.shape)
        if len(shape) not in (2, 3) or min(shape) < 4:
            raise ValueError(f"shape is {self.shape}; expected two or three numbers of cells, 4 or more each")
        positive(cell=self.cell)
        object.__setattr__(self, "shape", shape)
        for name in ("solid", "open"):
            object.__setattr__(self, name, self._mask(name))
        object.__setattr__(self, "open", self.open & ~self.solid)
        if not self.fluid.any():
            raise ValueError("no cell is fluid: all are solid or open")

    def _mask(self, name: str) -> np.ndarray:
        given = getattr(self, name)
        if given is None:
            return np.zeros(self.shape, bool)
        mask = np.asarray(given)
        if mask.shape != self.shape or mask.dtype != bool:
            raise ValueError(
                f"{name} has the shape {mask.shape} and the type {mask.dtype}; expected {self.shape} truth values, one per cell"
            )
        return mask.copy()

    @property
    def d(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape))

    @property
    def fluid(self) -> np.ndarray:
        """Cells that hold fluid whose pressure is to be found (*shape)."""
        return ~(self.solid | self.open)

    @cached_property
    def free(self) -> np.ndarray:
        """Faces that are no walls (d, *shape)."""
        return np.stack([~(self.solid | np.roll(self.solid, 1, a)) for a in range(self.d)])

    @cached_property
    def inside(self) -> np.ndarray:
        """Faces that lie within solids (d, *shape): both of their cells are solid."""
        return np.stack([self.solid & np.roll(self.solid, 1, a) for a in range(self.d)])

    @cached_property
    def neighbours(self) -> np.ndarray:
        """Number of neighbours of a fluid cell that are not solid, 0 for other cells (*shape)."""
        sides = [~np.roll(self.solid, s, a) for a in range(self.d) for s in (1, -1)]
        return np.where(self.fluid, np.sum(sides, axis=0), 0)

    @cached_property
    def places(self) -> np.ndarray:
        """Position of each cell, counted in cells along each axis (count, d)."""
        return np.stack(np.unravel_index(np.arange(self.count), self.shape), 1)

    @property
    def centres(self) -> np.ndarray:
        """Centres of the cells (*shape, d) [m]."""
        return self.cell * (self.places.reshape(*self.shape, self.d) + 0.5)

    def face_centres(self, axis: int) -> np.ndarray:
        """Return the centres of the lower faces across an axis (*shape, d) [m]."""
        return self.centres - self.cell * 0.5 * np.eye(self.d)[axis]

    def unit(self, axis: int, by: int = 1) -> Offset:
        """Return the offset of so many cells along an axis."""
        return tuple(by if k == axis else 0 for k in range(self.d))

    def table(self, offsets: list[Offset]) -> np.ndarray:
        """Return the cells at offsets from each cell (count, m), around the ends of the grid."""
        rows = [np.ravel_multi_index(tuple((self.places + o).T), self.shape, mode="wrap") for o in offsets]
        return np.stack(rows, 1)

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """Shape of the grid that repeats its first cells behind the last ones, so that the corners of every square lie in it."""
        return tuple(n + 1 for n in self.shape)

    @cached_property
    def padded(self) -> np.ndarray:
        """Cell of each cell of the padded grid (padded count, 1)."""
        places = np.unravel_index(np.arange(int(np.prod(self.padded_shape))), self.padded_shape)
        return np.ravel_multi_index(places, self.shape, mode="wrap")[:, None]

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps of a number of the padded grid along each axis."""
        return tuple(int(np.prod(self.padded_shape[k + 1 :])) for k in range(self.d))

    @property
    def corners(self) -> list[Offset]:
        """Corners of a square or cube."""
        return list(product((0, 1), repeat=self.d))


def border(shape: tuple[int, ...], axes: tuple[int, ...] | None = None, sides: tuple[int, ...] = (0, -1)) -> np.ndarray:
    """Return the outermost cells (*shape) of a grid, as truth values: walls, if they are solid.

    Args:
        shape: Shape of the grid.
        axes: Axes whose ends are meant; None: all.
        sides: 0 for the lower end, -1 for the upper one.
    """
    found = np.zeros(shape, bool)
    for a in range(len(shape)) if axes is None else axes:
        for side in sides:
            found[(slice(None),) * a + (side,)] = True
    return found
