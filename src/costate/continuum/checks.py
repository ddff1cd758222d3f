"""Checks of arrays that users give: each error says what was given, what was expected and what to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def first(wrong: NDArray[np.bool_] | np.bool_) -> int:
    """Return the first place of a mask that is true."""
    return int(np.argmax(wrong))


def rows_of_numbers(name: str, value: ArrayLike, width: int, what: str) -> NDArray[np.float64]:
    """Return a copy of an array (any number of rows, width) of finite numbers, or raise what is wrong with it."""
    array = np.array(value, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(f"{name} has the shape {array.shape}; expected (number, {width}): {what}")
    if not (finite := np.isfinite(array).all(axis=1)).all():
        k = first(~finite)
        raise ValueError(f"row {k} of {name} is {array[k].tolist()}; expected finite numbers: {what}")
    return array


def index_table(name: str, value: ArrayLike, width: int, count: int) -> NDArray[np.int64]:
    """Return a copy of a table (any number of rows, width) of node numbers below a count, or raise what is wrong with it."""
    given = np.asarray(value)
    if given.ndim != 2 or given.shape[1] != width:
        raise ValueError(f"{name} has the shape {given.shape}; expected (number, {width}): node numbers, from 0")
    table = given.astype(np.int64)
    if given.dtype.kind not in "iu" and (odd := table != given).any():
        raise ValueError(
            f"row {first(odd.any(axis=1))} of {name} is {given[first(odd.any(axis=1))]}; expected whole numbers"
        )
    if (out := ((table < 0) | (table >= count)).any(axis=1)).any():
        k = first(out)
        raise ValueError(
            f"row {k} of {name} is {table[k].tolist()}; there are {count} nodes, numbered from 0 to {count - 1}: "
            "subtract 1 if they are counted from 1"
        )
    return table


def ascending(name: str, value: ArrayLike, what: str, strictly: bool = False) -> NDArray[np.float64]:
    """Return a copy of a row of finite numbers that never falls, or never rests either, or raise what is wrong with it."""
    row = np.array(value, dtype=np.float64)
    if row.ndim != 1 or not np.isfinite(row).all():
        raise ValueError(f"{name} is {_short(row)}; expected a row of finite numbers: {what}")
    steps = np.diff(row)
    if (wrong := steps <= 0 if strictly else steps < 0).any():
        k = first(wrong) + 1
        raise ValueError(
            f"{name} goes from {row[k - 1]:g} to {row[k]:g} at row {k}; expected {'strictly ' if strictly else ''}ascending {what}"
        )
    return row


def positive(**values: float) -> None:
    """Raise if one of the named numbers is not finite and above 0."""
    for name, value in values.items():
        if not (np.isscalar(value) and 0 < float(value) < np.inf):  # pyright: ignore[reportArgumentType]
            raise ValueError(f"{name} is {value!r}; expected a number above 0, in SI units")


def _short(row: NDArray[np.float64]) -> str:
    return f"of shape {row.shape}" if row.ndim != 1 or len(row) > 6 else str(row.tolist())
