"""Tables of numbers from CSV, NPZ and Parquet files."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from costate.core.arrays import Array
from costate.core.extras import needs

TIME_NAMES = ("t", "time", "timestamp", "time_s", "stamp")
PREFIXES: dict[str, tuple[str, ...]] = {
    "q": ("q", "pos", "position", "angle"),
    "v": ("v", "qd", "dq", "vel", "velocity"),
    "a": ("a", "qdd", "ddq", "acc", "acceleration"),
    "tau": ("tau", "torque", "effort", "force"),
}
"""Beginnings of the names of columns, by quantity."""


class LogError(ValueError):
    """Data that must be corrected first. The message says where, and how."""


def read_table(path: Path) -> dict[str, Array]:
    """Read a table; the suffix .csv, .npz or .parquet decides how."""
    if path.suffix not in READERS:
        raise LogError(f"{path}: cannot read '{path.suffix}' files; give one of {', '.join(READERS)}")
    return READERS[path.suffix](path)


def _read_csv(path: Path) -> dict[str, Array]:
    """Read a header and numbers. A cell that is no number is NaN here, and reported with its row and column by the checks."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        try:
            header = [c.strip() for c in next(rows)]
        except StopIteration:
            raise LogError(f"{path}: is empty; expected a header line and rows of numbers") from None
        if len(set(header)) != len(header):
            twice = next(c for c in header if header.count(c) > 1)
            raise LogError(f"{path}: column '{twice}' appears twice; rename one")
        numbers = []
        for line, row in enumerate(rows, 2):
            if len(row) != len(header):
                raise LogError(f"{path}: line {line} has {len(row)} cells, the header has {len(header)}")
            numbers.append([_number(cell) for cell in row])
    if not numbers:
        raise LogError(f"{path}: has a header but no rows")
    table = np.array(numbers)
    return {name: table[:, k] for k, name in enumerate(header)}


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _read_npz(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as file:
        return {name: np.asarray(file[name], float) for name in file.files}


def _read_parquet(path: Path) -> dict[str, Array]:
    try:
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(needs(f"{path}: reading Parquet", "pyarrow", "data") + ", or convert to CSV") from None
    table = parquet.read_table(path)
    kinds = {field.name: str(field.type) for field in table.schema}
    numbers = {name for name, kind in kinds.items() if kind.startswith(("int", "uint", "float", "double", "half"))}
    for name in kinds.keys() - numbers:
        if _is_known(name):
            raise LogError(f"{path}: column '{name}' holds {kinds[name]}; expected numbers: convert it, or rename it")
    return {name: np.asarray(table[name].to_numpy(), float) for name in kinds if name in numbers}


def _is_known(name: str) -> bool:
    """Return whether a column would be taken for time, or a quantity of a joint."""
    return name in TIME_NAMES or any(name == p or name.startswith(f"{p}_") for ps in PREFIXES.values() for p in ps)


READERS = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}
