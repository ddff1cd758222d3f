"""Tool paths as rows of numbers: our own format (.csv, SI units) and the .crs files of thermal codes (millimetres).

    t,x,y,z,on
    0.0,0.0,0.0,0.001,0
    2.0,0.02,0.0,0.001,1

A .crs file has no header, blanks between its five numbers, and millimetres: `2.0 20.0 0.0 1.0 1`. In both the laser is on during
the segment that ends at a row with on = 1.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from costate.continuum.toolpath import ToolPath
from costate.core.files import write_text
from costate.core.readers.text import finite, lines_of, shown

_COLUMNS = ("t", "x", "y", "z", "on")


@dataclass(frozen=True)
class _Form:
    """A way to write rows."""

    separator: str | None
    """Text between numbers; None: blanks."""
    unit: float
    """Length of one unit of the positions [m]."""
    header: bool
    """True if the first line names the columns."""


CSV = _Form(",", 1.0, True)
CRS = _Form(None, 1e-3, False)


def read_csv(path: str | Path) -> ToolPath:
    """Return the path that a .csv file holds: a line `t,x,y,z,on`, then rows in seconds and metres."""
    return _read(Path(path), CSV)


def write_csv(path: str | Path, toolpath: ToolPath) -> None:
    """Write a .csv file with every number in full: reading it gives the same path."""
    _write(Path(path), toolpath, CSV)


def read_crs(path: str | Path) -> ToolPath:
    """Return the path that a .crs file holds: rows `t x y z on` in seconds and millimetres."""
    return _read(Path(path), CRS)


def write_crs(path: str | Path, toolpath: ToolPath) -> None:
    """Write a .crs file: rows `t x y z on` in seconds and millimetres."""
    _write(Path(path), toolpath, CRS)


def _read(path: Path, form: _Form) -> ToolPath:
    lines = ((k, text.strip()) for k, text in lines_of(path) if text.strip() and not text.lstrip().startswith("#"))
    if form.header:
        place, head = next(lines, (0, ""))
        if tuple(name.strip() for name in head.split(",")) != _COLUMNS:
            found = f"line {place} is {shown(head)}" if head else "it is empty"
            raise ValueError(
                f"{path}: {found}; expected the header {','.join(_COLUMNS)}, then rows in seconds and metres"
            )
    packed = array("d")
    for place, line in lines:
        packed.extend(_row(path, place, line, form))
    rows = np.array(packed).reshape(-1, 5)
    try:
        return ToolPath(rows[:, 0], form.unit * rows[:, 1:4], rows[:, 4] == 1)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _row(path: Path, place: int, line: str, form: _Form) -> list[float]:
    fields = line.split(form.separator)
    try:
        row = [finite(field.strip()) for field in fields]
    except ValueError:
        row = []
    if len(row) != 5:
        raise ValueError(f"{path}, line {place}: {shown(line)}; expected five finite numbers: {', '.join(_COLUMNS)}")
    if row[4] not in (0, 1):
        raise ValueError(f"{path}, line {place}: the laser is {fields[4]!r}; expected 1 for on or 0 for off")
    return row


def _write(path: Path, toolpath: ToolPath, form: _Form) -> None:
    between = form.separator or " "
    rows: Iterable[str] = (
        between.join([*(repr(float(v)) for v in (t, *(p / form.unit))), str(int(on))])
        for t, p, on in zip(toolpath.times, toolpath.positions, toolpath.on, strict=True)
    )
    head = [",".join(_COLUMNS)] if form.header else []
    write_text(path, "\n".join([*head, *rows]) + "\n")
