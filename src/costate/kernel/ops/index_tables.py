"""Index tables: which elements of a vector each instance of a map or a walk reads or writes, (instances, elements)."""

from __future__ import annotations

from typing import Any

import numpy as np


def index_table(table: Any) -> np.ndarray:
    """Return a table as an array of integers with a row per instance."""
    return np.atleast_2d(np.asarray(table, np.int64))


def check_table(table: np.ndarray, shape: tuple[int, int], size: int) -> None:
    """Raise if a table does not have the shape, or names an element outside of a vector of `size` elements."""
    if table.shape != shape:
        raise ValueError(f"an index table has shape {table.shape}, expected {shape}: instances x elements")
    if table.size and not 0 <= table.min() <= table.max() < size:
        raise ValueError(
            f"an index table reaches from {table.min()} to {table.max()}, outside of a vector of {size} elements"
        )


def table_parts(*tables: np.ndarray) -> list[Any]:
    """Return what tells tables from others: shapes and bytes."""
    return [part for t in tables for part in (t.shape, np.ascontiguousarray(t, np.int64).tobytes())]
