"""Tables of meshes: which points make a hinge between two triangles, and which blocks a sparse matrix has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from costate.kernel.ops.fields.blocks import BLOCK, block_count


def edges_of(triangles: np.ndarray) -> np.ndarray:
    """Return the edges (n, 2) of triangles, each once, lower number first."""
    every = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    return np.unique(every, axis=0)


def hinges_of(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the hinges (n, 4) of a mesh, and the two triangles (n, 2) of each.

    A hinge is an edge (first two points, as they follow one another in the first triangle) and the points opposite to it in the
    first and the second triangle.
    """
    t = len(triangles)
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    opposite = np.concatenate([triangles[:, 2], triangles[:, 0], triangles[:, 1]])
    owner = np.tile(np.arange(t), 3)
    order = np.lexsort((edges.max(1), edges.min(1)))
    edges, opposite, owner = edges[order], opposite[order], owner[order]
    key = np.sort(edges, axis=1)
    same = (key[1:] == key[:-1]).all(1)
    if (same[1:] & same[:-1]).any():
        k = int(np.argmax(same[1:] & same[:-1]))
        raise ValueError(f"the edge {key[k].tolist()} belongs to three triangles or more; an edge has at most two")
    first = np.nonzero(same)[0]
    table = np.column_stack([edges[first], opposite[first], opposite[first + 1]])
    return table, np.column_stack([owner[first], owner[first + 1]])


@dataclass(frozen=True, eq=False)
class Pattern:
    """Places of the blocks of a sparse symmetric matrix: those of every point lie together, its own first.

    Blocks of 3 x 3 numbers come first, m3 for every point; blocks that are a number times the identity have m places. Both are
    numbered so that the blocks of sixteen points lie as the numbers of one field of these points do.
    """

    count: int
    full: Sequence[np.ndarray]
    """Points (n, k) of elements, all pairs of which have a block of 3 x 3 numbers."""
    scalar: Sequence[np.ndarray]
    """Points (n, k) of elements, all pairs of which have a block that is a number times the identity."""

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs as numbers row * count + column, ascending, and the place of each in its row."""
        own = np.arange(self.count) * (self.count + 1)
        full = np.unique(np.concatenate([own, *(self._keys(t).ravel() for t in self.full)]))
        every = np.unique(np.concatenate([full, *(self._keys(t).ravel() for t in self.scalar)]))
        row, column = np.divmod(every, self.count)
        order = np.lexsort((column, ~np.isin(every, full), row != column, row))
        starts = np.searchsorted(row, np.arange(self.count))
        place = np.empty(len(every), np.int64)
        place[order] = np.arange(len(every)) - starts[row[order]]
        return every, place

    def _keys(self, table: np.ndarray) -> np.ndarray:
        k = table.shape[1]
        return np.repeat(table, k, 1) * self.count + np.tile(table, k)

    def _places(self, table: np.ndarray) -> np.ndarray:
        return self._place(self._keys(table))

    def _place(self, keys: np.ndarray) -> np.ndarray:
        every, place = self._pairs
        return place[np.searchsorted(every, keys)]

    @cached_property
    def m(self) -> int:
        """Number of places of a point."""
        return int(self._pairs[1].max()) + 1

    @cached_property
    def m3(self) -> int:
        """Number of its places that may hold 3 x 3 numbers."""
        return max((int(self._places(t).max()) + 1 for t in self.full), default=1)

    @cached_property
    def neighbours(self) -> np.ndarray:
        """Points (count, m) that the places of a point belong to; the point itself where there is none."""
        every, place = self._pairs
        found = np.repeat(np.arange(self.count)[:, None], self.m, 1)
        found[every // self.count, place] = every % self.count
        return found

    def places(self, m: int) -> int:
        """Return the number of all places, m for each point."""
        return block_count(self.count) * BLOCK * m

    def slots(self, table: np.ndarray, m: int) -> np.ndarray:
        """Return the numbers (n, k * k) of the places of all pairs of points of elements, row by row, with m places each."""
        k = table.shape[1]
        return self.pair_slots(np.repeat(table, k, 1), np.tile(table, k), m)

    def pair_slots(self, i: np.ndarray, j: np.ndarray, m: int) -> np.ndarray:
        """Return the numbers of the places of pairs of points, with m places for each point."""
        return (i // BLOCK * m + self._place(i * self.count + j)) * BLOCK + i % BLOCK
