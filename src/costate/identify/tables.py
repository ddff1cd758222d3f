"""Tables of numbers from CSV, NPZ and Parquet files."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

from costate.core.arrays import Array
from costate.core.extras import needs

TIME_NAMES = ("t", "time", "timestamp", "time_s", "stamp")
PREFIXES: dict[str, tuple[str, ...]] = {
    "q": ("q", "pos", "position", "angle"),
    "v": ("v", "qd", "dq", "vel", "velocity"),
    "a": ("a", "qdd", "ddq", "acc", "acceleration"),
    "tau": ("tau", "torque", "effort", "force", "current"),
}
"""Beginnings of the names of columns, by quantity."""


class LogError(ValueError):
    """Data that must be corrected first. The message says where, and how."""


def read_table(path: Path, header: str | None = None) -> tuple[dict[str, Array], list[str]]:
    """Read a table; the suffix .csv, .npz or .parquet decides how. Returns it with notes on what was left out.

    header: names of the columns of a CSV file that has no header line: see `named_columns`.
    """
    if path.suffix not in (".csv", *READERS):
        raise LogError(f"{path}: cannot read '{path.suffix}' files; give one of .csv, {', '.join(READERS)}")
    if path.suffix == ".csv":
        return _read_csv(path, header)
    return READERS[path.suffix](path), []


def named_columns(header: str) -> list[str]:
    """Return the names that a header stands for: "t q1-3" is t, q1, q2, q3."""
    names: list[str] = []
    for part in re.split(r"[,\s]+", header.strip()):
        found = re.fullmatch(r"(.*?)(\d+)-(\d+)", part)
        names += [f"{found[1]}{k}" for k in range(int(found[2]), int(found[3]) + 1)] if found else [part]
    return names


def _read_csv(path: Path, names: str | None) -> tuple[dict[str, Array], list[str]]:
    """Read a header and numbers. A cell that is no number is NaN here, and reported with its row and column by the checks."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [[c.strip() for c in row] for row in csv.reader(file)]
    if not rows:
        raise LogError(f"{path}: is empty; expected a header line and rows of numbers")
    first = 1
    if names is not None:
        header, first = named_columns(names), 0
        if len(header) > len(rows[0]):
            raise LogError(f"{path}: header= names {len(header)} columns, but line 1 has {len(rows[0])}")
        header += [f"column {k + 1}" for k in range(len(header), len(rows[0]))]
    else:
        header = rows[0]
        if len(header) > 1 and all(np.isfinite(_number(c)) for c in header):
            raise LogError(
                f"{path}: line 1 holds numbers, not names; give names with header= (--header 't q1-6 v1-6 tau1-6')"
            )
    if len(set(header)) != len(header):
        twice = next(c for c in header if header.count(c) > 1)
        raise LogError(f"{path}: column '{twice}' appears twice; rename one")
    return _numbers(path, header, rows, first)


def _numbers(path: Path, header: list[str], rows: list[list[str]], first: int) -> tuple[dict[str, Array], list[str]]:
    notes = []
    if len(rows) > first + 1 and 0 < len(rows[-1]) < len(header):
        notes.append(f"rows: the last line of the file, {len(rows)}, was cut off: left out")
        rows = rows[:-1]
    for line, row in enumerate(rows[first:], first + 1):
        if len(row) != len(header):
            raise LogError(f"{path}: line {line} has {len(row)} cells, the header has {len(header)}")
    if len(rows) == first:
        raise LogError(f"{path}: has a header but no rows")
    table = np.array([[_number(cell) for cell in row] for row in rows[first:]])
    return {name: table[:, k] for k, name in enumerate(header)}, notes


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


READERS = {".npz": _read_npz, ".parquet": _read_parquet}
