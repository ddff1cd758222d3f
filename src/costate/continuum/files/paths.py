"""Tool paths by the ending of their files' names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from costate.continuum.files.gcode import read_gcode, write_gcode
from costate.continuum.files.rows import read_crs, read_csv, write_crs, write_csv
from costate.continuum.toolpath import ToolPath

_GCODE = (read_gcode, write_gcode)
KINDS: dict[str, tuple[Callable[[Path], ToolPath], Callable[[Path, ToolPath], None]]] = {
    ".csv": (read_csv, write_csv),
    ".crs": (read_crs, write_crs),
    ".gcode": _GCODE,
    ".g": _GCODE,
    ".nc": _GCODE,
    ".ngc": _GCODE,
}
"""Ending of a file's name -> how it is read and written."""


def read_toolpath(path: str | Path) -> ToolPath:
    """Return the path that a .csv, .crs or G-code file holds."""
    return _kind(Path(path))[0](Path(path))


def write_toolpath(path: str | Path, toolpath: ToolPath) -> None:
    """Write a path to a .csv, .crs or G-code file."""
    _kind(Path(path))[1](Path(path), toolpath)


def _kind(path: Path) -> tuple[Callable[[Path], ToolPath], Callable[[Path, ToolPath], None]]:
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{path} ends with {path.suffix!r}; expected one of {', '.join(KINDS)}")
    return KINDS[path.suffix.lower()]
