"""Tables of numbers from CSV, NPZ and Parquet files."""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from costate.core.arrays import Array
from costate.core.extras import needs
from costate.core.limits import excess
from costate.core.readers.npz import read_npz
from costate.core.readers.text import finite, lines_of, shown

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
    rows = _cells(path)
    place, head = next(rows, (0, []))
    if not place:
        raise LogError(f"{path}: is empty; expected a header line and rows of numbers")
    if names is not None:
        header = named_columns(names)
        if len(header) > len(head):
            raise LogError(f"{path}: header= names {len(header)} columns, but line 1 has {len(head)}")
        header += [f"column {k + 1}" for k in range(len(header), len(head))]
        rows = chain([(place, head)], rows)
    else:
        header = head
        if len(header) > 1 and all(np.isfinite(_number(c)) for c in header):
            raise LogError(
                f"{path}: line 1 holds numbers, not names; give names with header= (--header 't q1-6 v1-6 tau1-6')"
            )
    if len(set(header)) != len(header):
        twice = next(name for name, count in Counter(header).items() if count > 1)
        raise LogError(f"{path}: column {shown(twice)} appears twice; rename one")
    return _numbers(path, header, rows)


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line of a CSV file, and its cells. A line is a row: a quote must end where it begins."""
    for place, line in lines_of(path):
        try:
            yield place, [cell.strip() for row in csv.reader([line], strict=True) for cell in row]
        except csv.Error as error:
            raise LogError(f"{path}, line {place}: {shown(line)} cannot be read as CSV: {error}") from None


def _numbers(
    path: Path, header: list[str], rows: Iterator[tuple[int, list[str]]]
) -> tuple[dict[str, Array], list[str]]:
    """Read the rows, one at a time: texts take ten times the memory of numbers."""
    packed, notes, short = array("d"), [], None
    for place, row in rows:
        if short is not None:
            raise LogError(f"{path}: line {short[0]} has {short[1]} cells, the header has {len(header)}")
        if len(row) == len(header):
            packed.extend(map(_number, row))
        else:
            short = place, len(row)
    if short is not None:  # the last line
        if not packed or not 0 < short[1] < len(header):
            raise LogError(f"{path}: line {short[0]} has {short[1]} cells, the header has {len(header)}")
        notes.append(f"rows: the last line of the file, {short[0]}, was cut off: left out")
    if not packed:
        raise LogError(f"{path}: has a header but no rows")
    table = np.array(packed).reshape(-1, len(header))
    return {name: table[:, k] for k, name in enumerate(header)}, notes


def _number(cell: str) -> float:
    try:
        return finite(cell)
    except ValueError:
        return float("nan")


def _read_npz(path: Path) -> dict[str, Array]:
    try:
        return read_npz(path)
    except ValueError as error:
        raise LogError(str(error)) from None


def _read_parquet(path: Path) -> dict[str, Array]:
    """Read the columns of numbers, if what the file's own note of their sizes says is within the limit."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(needs(f"{path}: reading Parquet", "pyarrow", "data") + ", or convert to CSV") from None
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            kinds = {field.name: str(field.type) for field in file.schema_arrow}
            numbers = [n for n, kind in kinds.items() if kind.startswith(("int", "uint", "float", "double", "half"))]
            for name in kinds.keys() - set(numbers):
                if _is_known(name):
                    raise LogError(f"column '{name}' holds {kinds[name]}; expected numbers: convert it, or rename it")
            groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
            size = max(8 * file.metadata.num_rows * len(numbers), sum(g.total_byte_size for g in groups))
            if over := excess("log_mb", size / 2**20):
                raise LogError(over)
            table = file.read(columns=numbers)
            return {name: np.asarray(table[name].to_numpy(), float) for name in numbers}
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise LogError(f"{path}: {error}") from None


def _is_known(name: str) -> bool:
    """Return whether a column would be taken for time, or a quantity of a joint."""
    return name in TIME_NAMES or any(name == p or name.startswith(f"{p}_") for ps in PREFIXES.values() for p in ps)


READERS = {".npz": _read_npz, ".parquet": _read_parquet}
