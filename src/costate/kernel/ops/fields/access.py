"""Accesses: how an entity's function reaches the numbers it reads, and where its results go.

Every access works in both directions, and its direction is turned by differentiation: what was read by many is then summed.

    access       read                                          written
    Own          the entity's own numbers                      the entity's own numbers
    Shared       numbers that all entities read                the sum over all entities
    Greatest     -                                             the greatest over all entities, and 0
    Indexed      numbers of m entities, by a constant table    added to them, in the order of the table
    Stencil      numbers of the entities at index + offsets    added to them, in the order of the entities
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.program import digest
from costate.kernel.ops.fields.blocks import BLOCK, block_count, from_blocks, to_blocks


class Access(ABC):
    """One argument or result of an entity's function."""

    n: int
    """Numbers per entity that is reached."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of elements of the vector that is read or written."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of numbers that the entity's function takes or returns."""

    @abstractmethod
    def read(self, elements: np.ndarray, count: int, index: np.ndarray | None) -> np.ndarray:
        """Return the arguments (count, width) of all entities: the meaning of the access."""

    @abstractmethod
    def write(self, results: np.ndarray, index: np.ndarray | None) -> np.ndarray:
        """Return the vector made of the results (count, width) of all entities."""

    def describe(self) -> tuple[Any, ...]:
        """Return what tells this access from others."""
        return (type(self).__name__, self.size, self.width)

    def grids(self) -> dict[str, np.ndarray]:
        """Return the tables that code of this access refers to, in either direction."""
        return {}


@dataclass(frozen=True, eq=False)
class Own(Access):
    """The entity's own numbers."""

    count: int
    n: int

    @property
    def size(self) -> int:
        return block_count(self.count) * self.n

    @property
    def width(self) -> int:
        return self.n

    def read(self, elements, count, index) -> np.ndarray:
        return from_blocks(elements, count)

    def write(self, results, index) -> np.ndarray:
        return to_blocks(results)


@dataclass(frozen=True, eq=False)
class Shared(Access):
    """Numbers that all entities read, or sums over all entities."""

    n: int

    @property
    def size(self) -> int:
        return self.n

    @property
    def width(self) -> int:
        return self.n

    def read(self, elements, count, index) -> np.ndarray:
        return np.broadcast_to(elements[:, 0], (count, self.n))

    def write(self, results, index) -> np.ndarray:
        return np.repeat(results.sum(0)[:, None], BLOCK, axis=1)


@dataclass(frozen=True, eq=False)
class Greatest(Shared):
    """The greatest of all entities' numbers and 0, one by one. It has no derivative."""

    def read(self, elements, count, index) -> np.ndarray:
        raise ValueError("the greatest number of all entities has no derivative; write a TOTAL instead")

    def write(self, results, index) -> np.ndarray:
        return np.repeat(results.max(0, initial=0.0)[:, None], BLOCK, axis=1)


@dataclass(frozen=True, eq=False)
class Indexed(Access):
    """Numbers of other entities, by a constant table."""

    table: np.ndarray
    """Entities that are reached (count, m)."""
    target: int
    """Number of entities that there are to reach."""
    n: int

    @property
    def size(self) -> int:
        return block_count(self.target) * self.n

    @property
    def width(self) -> int:
        return self.table.shape[1] * self.n

    def read(self, elements, count, index) -> np.ndarray:
        return from_blocks(elements, self.target)[self.table].reshape(count, self.width)

    def write(self, results, index) -> np.ndarray:
        out = np.zeros((self.target, self.n))
        np.add.at(out, self.table, results.reshape(*self.table.shape, self.n))
        return to_blocks(out)

    def describe(self) -> tuple[Any, ...]:
        return (*super().describe(), self.name)

    @cached_property
    def name(self) -> str:
        """Name of the tables in the code."""
        return f"f{digest(self.table.shape, self.table.tobytes(), self.target, self.n)[:24]}"

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the tables: entities that are read, places that are summed, first place of every block."""
        return f"{self.name}_read", f"{self.name}_sum", f"{self.name}_first"

    def grids(self) -> dict[str, np.ndarray]:
        return dict(zip(self.names, (self.read_table, *self.sum_tables), strict=True))

    @cached_property
    def read_table(self) -> np.ndarray:
        """Entities (blocks, m, 16) that are read, 0 behind the last one."""
        return np.ascontiguousarray(to_blocks(self.table), np.int32)

    @property
    def places(self) -> int:
        """Elements of the buffer that results wait in: those of all blocks, and a block of zeros."""
        return (block_count(len(self.table)) + 1) * self.width

    @cached_property
    def sum_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the buffer [numbers] that a target sums: rows of 16, as many per block as its longest sum has terms; and the
        first row of every block. Terms that a shorter sum lacks are places that hold 0."""
        count, m = self.table.shape
        entity, slot = np.divmod(np.arange(count * m), m)
        place = ((entity // BLOCK) * self.width + slot * self.n) * BLOCK + entity % BLOCK
        order = np.argsort(self.table.ravel(), kind="stable")
        target = self.table.ravel()[order]
        terms = np.bincount(target, minlength=block_count(self.target) * BLOCK)
        rank = np.arange(count * m) - np.repeat(np.cumsum(terms) - terms, terms)
        longest = terms.reshape(-1, BLOCK).max(1, initial=0)
        first = np.concatenate([[0], np.cumsum(longest)])
        rows = np.full((int(first[-1]), BLOCK), block_count(count) * self.width * BLOCK)
        rows[first[target // BLOCK] + rank, target % BLOCK] = place[order]
        return np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(first, np.int32)


@dataclass(frozen=True, eq=False)
class Stencil(Access):
    """Numbers of the entities of a grid at a computed index plus constant offsets."""

    target: int
    """Number of cells of the grid."""
    offsets: tuple[int, ...]
    n: int
    index: int = 0
    """Number of the index, among those of the stage."""

    @property
    def size(self) -> int:
        return block_count(self.target) * self.n

    @property
    def width(self) -> int:
        return len(self.offsets) * self.n

    def cells(self, index: np.ndarray | None) -> np.ndarray:
        """Return the cells (count, m). An index outside of the grid is moved to the nearest one inside."""
        assert index is not None
        low, high = -min(self.offsets), self.target - 1 - max(self.offsets)
        base = np.clip(np.nan_to_num(index, nan=low), low, high).astype(np.int64)
        return base[:, None] + np.array(self.offsets)

    def read(self, elements, count, index) -> np.ndarray:
        return from_blocks(elements, self.target)[self.cells(index)].reshape(count, self.width)

    def write(self, results, index) -> np.ndarray:
        out = np.zeros((self.target, self.n))
        np.add.at(out, self.cells(index), results.reshape(len(results), -1, self.n))
        return to_blocks(out)

    def describe(self) -> tuple[Any, ...]:
        return (*super().describe(), self.target, self.offsets, self.index)
