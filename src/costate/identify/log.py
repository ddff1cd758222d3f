"""Logs of a robot's motion, from tables whose columns are told apart by their names.

A table has a column of time stamps and, for every joint, positions and torques, perhaps velocities and accelerations:

    t, q_shoulder, ..., tau_shoulder, ...        joint names, or numbers counted from 0 or 1: q_1 ... tau_6

`PREFIXES` in `tables.py` lists the names understood; the option `columns` names others. NPZ files may also hold whole arrays
t (N,), q (N, nq), v, a, tau (N, nv).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from costate.core.arrays import Array
from costate.core.names import did_you_mean
from costate.identify.repair.hold import beyond, resting_place
from costate.identify.tables import PREFIXES, TIME_NAMES, LogError, read_table
from costate.model import Model

Columns = Mapping[str, "str | Sequence[str]"]
"""Column of each quantity ("time", "q", "v", "a", "tau"), or one column per joint in the robot's order."""


@dataclass(frozen=True, eq=False)
class Log:
    """The samples of a motion, with the names of the columns they came from."""

    q: Array
    """Positions [rad or m], shape (N, nq)."""
    tau: Array
    """Joint torques [N m or N], shape (N, nv)."""
    t: Array | None = None
    """Time stamps [s], increasing, shape (N,)."""
    v: Array | None = None
    """Velocities [rad/s or m/s], shape (N, nv); None: to be found from the positions."""
    a: Array | None = None
    """Accelerations, shape (N, nv)."""
    columns: Mapping[str, Sequence[str]] | None = None
    """Names of the columns of each quantity, for messages."""
    source: str = "the data"
    first_row: int = 0
    """Number of the first sample in messages: 2 for the line after a CSV's header."""
    rows: Array | None = None
    """Numbers of the samples in the file, counted from 0, if some are left out, shape (N,)."""

    def __len__(self) -> int:
        return len(self.q)

    def column(self, quantity: str, k: int) -> str:
        """Return the name of a column, for messages."""
        if self.columns and quantity in self.columns:
            return self.columns[quantity][k]
        return quantity if quantity == "time" else f"{quantity}[{k}]"

    def row(self, k: int) -> str:
        """Return the name of a sample, for messages."""
        k = k if self.rows is None else int(self.rows[k])
        return f"line {k + self.first_row}" if self.first_row else f"row {k}"

    def arrays(self) -> dict[str, Array]:
        """Return what was measured, by quantity; time as a column."""
        found = {
            "time": None if self.t is None else self.t[:, None],
            "q": self.q,
            "v": self.v,
            "a": self.a,
            "tau": self.tau,
        }
        return {name: x for name, x in found.items() if x is not None}

    def take(self, index: Array | slice) -> Log:
        """Return some of the samples."""
        cut = {
            name: getattr(self, name)[index] for name in ("q", "tau", "t", "v", "a") if getattr(self, name) is not None
        }
        rows = np.arange(len(self)) if self.rows is None else self.rows
        return replace(self, **cut, rows=rows[index])

    @staticmethod
    def read(path: str | Path, model: Model, columns: Columns | None = None) -> Log:
        """Read a table; the suffix .csv, .npz or .parquet decides how."""
        path = Path(path)
        return from_table(read_table(path)[0], model, columns, str(path), first_row(path))


def first_row(path: Path) -> int:
    """Return the number of a file's first sample in messages."""
    return 2 if path.suffix == ".csv" else 0


def from_table(
    table: Mapping[str, Array],
    model: Model,
    columns: Columns | None = None,
    source: str = "the data",
    first_row: int = 0,
) -> Log:
    """Return a log from named columns (N,), or whole arrays (N, n)."""
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
    """Return one column per joint, or None if there are none at all. Some but not all is an error."""
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
            for between in ("_", ""):
                wanted = [f"{prefix}{between}{s}".lower() for s in suffixes]
                if all(w in lower for w in wanted):
                    return [lower[w] for w in wanted]
            wanted = [f"{prefix}_{s}".lower() for s in suffixes]
            if suffixes is joints and any(w in lower for w in wanted):
                missing = next(w for w in wanted if w not in lower)
                spare = [c for low, c in lower.items() if low.startswith(f"{prefix}_") and low not in wanted]
                raise LogError(f"{source}: column '{missing}' is missing; {_near(missing, spare or list(table))}")
    return None


def unlogged(table: Mapping[str, Array], model: Model, columns: Columns | None = None) -> dict[str, float]:
    """Return joints that have no column at all and lie beyond those that have, with the positions at which to hold them.

    Columns with numbers belong to the first joints.
    """
    joints = _joints(model)
    if columns or any(j.nv != 1 for j in model.joints if j.nv):
        return {}
    lower = {c.strip().lower() for c in table if np.ndim(table[c]) == 1}
    prefixes = [p for names in PREFIXES.values() for p in names]

    def has(suffix: object) -> bool:
        return any(f"{p}{between}{suffix}".lower() in lower for p in prefixes for between in ("_", ""))

    logged = [name for name in joints if has(name)]
    if not logged:
        count = next((k for k in range(len(joints)) if not has(k + 1)), len(joints))
        logged = joints[: count + has(0)]
    if not logged or len(logged) == len(joints):
        return {}
    missing = beyond(model, set(logged))
    if missing is None:
        absent = [name for name in joints if name not in logged]
        raise LogError(
            f"there are no columns of joint{'s' if len(absent) > 1 else ''} {', '.join(absent)}; if they stood still, say where: "
            f"hold={{'{absent[0]}': 0.0}} (--hold {absent[0]}=0)"
        )
    return {name: resting_place(model.joint(name)) for name in missing}


def _near(name: str, table: Iterable[str]) -> str:
    return did_you_mean(name, table) or f"the columns are {', '.join(table)}"
