"""Logs of a robot's motion: reading CSV, NPZ and Parquet tables and telling their columns apart.

A table has a column of time stamps and, for every joint, positions and torques, perhaps velocities and accelerations:

    t, q_shoulder, ..., tau_shoulder, ...        joint names, or numbers counted from 0 or 1: q_1 ... tau_6

`PREFIXES` lists the names understood; the option `columns` names others. NPZ files may also hold whole arrays t (N,), q (N, nq),
v, a, tau (N, nv).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costate.model import Model

Array = NDArray[Any]
Columns = Mapping[str, "str | Sequence[str]"]
"""Quantity ("time", "q", "v", "a", "tau") -> the column, or one column per joint in the robot's order."""

TIME_NAMES = ("t", "time", "timestamp", "time_s", "stamp")
PREFIXES: dict[str, tuple[str, ...]] = {
    "q": ("q", "pos", "position", "angle"),
    "v": ("v", "qd", "dq", "vel", "velocity"),
    "a": ("a", "qdd", "ddq", "acc", "acceleration"),
    "tau": ("tau", "torque", "effort", "force"),
}


class LogError(ValueError):
    """Something in the data that must be mended first; says where, and how."""


@dataclass(frozen=True, eq=False)
class Log:
    """N samples of a motion, with the names of the columns they came from."""

    q: Array
    """Positions [rad or m], shape (N, nq)."""
    tau: Array
    """Joint torques [N m or N], shape (N, nv)."""
    t: Array | None = None
    """Time stamps [s], increasing, shape (N,)."""
    v: Array | None = None
    """Velocities [rad/s or m/s], shape (N, nv); None: to be had from the positions."""
    a: Array | None = None
    """Accelerations, shape (N, nv)."""
    columns: Mapping[str, Sequence[str]] | None = None
    """Quantity -> names of its columns, for messages."""
    source: str = "the data"
    first_row: int = 0
    """Number of the first sample in messages: 2 for the line after a CSV's header."""

    def __len__(self) -> int:
        return len(self.q)

    def column(self, quantity: str, k: int) -> str:
        """Name of a column, for messages."""
        if self.columns and quantity in self.columns:
            return self.columns[quantity][k]
        return quantity if quantity == "time" else f"{quantity}[{k}]"

    def row(self, k: int) -> str:
        """Name of a sample, for messages."""
        return f"line {k + self.first_row}" if self.first_row else f"row {k}"

    def arrays(self) -> dict[str, Array]:
        """What was measured, by quantity; time as a column."""
        found = {
            "time": None if self.t is None else self.t[:, None],
            "q": self.q,
            "v": self.v,
            "a": self.a,
            "tau": self.tau,
        }
        return {name: x for name, x in found.items() if x is not None}

    def take(self, index: Array | slice) -> Log:
        """Some of the samples."""
        cut = {
            name: getattr(self, name)[index] for name in ("q", "tau", "t", "v", "a") if getattr(self, name) is not None
        }
        return replace(self, **cut)

    @staticmethod
    def read(path: str | Path, model: Model, columns: Columns | None = None) -> Log:
        """Read a table; the suffix .csv, .npz or .parquet decides how."""
        path = Path(path)
        if path.suffix not in READERS:
            raise LogError(f"{path}: cannot read '{path.suffix}' files; give one of {', '.join(READERS)}")
        table = READERS[path.suffix](path)
        first = 2 if path.suffix == ".csv" else 0
        return from_table(table, model, columns, str(path), first)


def from_table(
    table: Mapping[str, Array],
    model: Model,
    columns: Columns | None = None,
    source: str = "the data",
    first_row: int = 0,
) -> Log:
    """A log from named columns (N,), or whole arrays (N, n)."""
    found: dict[str, Array] = {}
    names: dict[str, Sequence[str]] = {}
    time = _time_column(table, columns, source)
    if time is not None:
        found["t"], names["time"] = np.asarray(table[time], float).reshape(-1), [time]
    for quantity in PREFIXES:
        if quantity in table and np.ndim(table[quantity]) == 2 and not (columns and quantity in columns):
            found[quantity] = _whole(table[quantity], quantity, model, source)
        elif chosen := _columns_of(quantity, table, model, columns, source):
            found[quantity] = np.stack([np.asarray(table[c], float).reshape(-1) for c in chosen], -1)
            names[quantity] = chosen
    for quantity, what in (("q", "positions"), ("tau", "torques")):
        if quantity not in found:
            example = f"{quantity}_{_joints(model)[0]}" if _joints(model) else quantity
            raise LogError(
                f"{source}: found no {what}; expected columns like '{example}' or '{quantity}_1' "
                f"({', '.join(PREFIXES[quantity])}), but the columns are {', '.join(table)}; name others with columns="
            )
    lengths = {name: len(x) for name, x in found.items()}
    if len(set(lengths.values())) != 1:
        raise LogError(f"{source}: columns differ in length: {lengths}")
    return Log(**found, columns=names, source=source, first_row=first_row)


def _joints(model: Model) -> list[str]:
    return [j.name for j in model.joints if j.nv]


def _whole(x: Array, quantity: str, model: Model, source: str) -> Array:
    expected = model.nq if quantity == "q" else model.nv
    if x.shape[1] != expected:
        raise LogError(f"{source}: {quantity} has shape {x.shape}; robot '{model.name}' needs (N, {expected})")
    return np.asarray(x, float)


def _time_column(table: Mapping[str, Array], columns: Columns | None, source: str) -> str | None:
    if columns and "time" in columns:
        name = str(columns["time"])
        if name not in table:
            raise LogError(f"{source}: there is no column '{name}'; {_near(name, table)}")
        return name
    return next((c for c in table if c.strip().lower() in TIME_NAMES), None)


def _columns_of(
    quantity: str, table: Mapping[str, Array], model: Model, columns: Columns | None, source: str
) -> list[str] | None:
    """One column per joint, or None if there are none at all. Some but not all is an error."""
    joints = _joints(model)
    if columns and quantity in columns:
        given = [str(c) for c in columns[quantity]]
        for name in given:
            if name not in table:
                raise LogError(f"{source}: there is no column '{name}'; {_near(name, table)}")
        if len(given) != len(joints):
            raise LogError(f"{source}: {len(given)} columns given for {quantity}, robot has joints {', '.join(joints)}")
        return given
    if any(j.nv > 1 for j in model.joints):
        return None
    lower = {c.strip().lower(): c for c in table}
    for prefix in PREFIXES[quantity]:
        for suffixes in (joints, range(len(joints)), range(1, len(joints) + 1)):
            wanted = [f"{prefix}_{s}".lower() for s in suffixes]
            hits = [w for w in wanted if w in lower]
            if len(hits) == len(joints):
                return [lower[w] for w in wanted]
            if hits and suffixes is joints:
                missing = next(w for w in wanted if w not in lower)
                spare = [c for low, c in lower.items() if low.startswith(f"{prefix}_") and low not in wanted]
                raise LogError(f"{source}: column '{missing}' is missing; {_near(missing, spare or list(table))}")
    return None


def _near(name: str, table: Iterable[str]) -> str:
    close = get_close_matches(name, list(table), n=3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"the columns are {', '.join(table)}"


# --- readers ----------------------------------------------------------------------------------------------------------


def _read_csv(path: Path) -> dict[str, Array]:
    """Header and numbers. A cell that is no number is NaN here, and reported with its row and column by the checks."""
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
        raise ImportError(
            f"{path}: reading Parquet needs pyarrow; pip install 'costate[data]', or convert to CSV"
        ) from None
    table = parquet.read_table(path)
    kinds = {field.name: str(field.type) for field in table.schema}
    numbers = {name for name, kind in kinds.items() if kind.startswith(("int", "uint", "float", "double", "half"))}
    for name in kinds.keys() - numbers:
        if _is_known(name):
            raise LogError(f"{path}: column '{name}' holds {kinds[name]}; expected numbers: convert it, or rename it")
    return {name: np.asarray(table[name].to_numpy(), float) for name in kinds if name in numbers}


def _is_known(name: str) -> bool:
    """Whether a column would be taken for time, or a quantity of a joint."""
    return name in TIME_NAMES or any(name == p or name.startswith(f"{p}_") for ps in PREFIXES.values() for p in ps)


READERS = {".csv": _read_csv, ".npz": _read_npz, ".parquet": _read_parquet}
