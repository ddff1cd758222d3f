"""Finds the mesh files that robot files name as package://..., file://... or a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

SEARCHED_PARENTS = 6
"""Number of folders above the robot file that are searched for a package."""


def find_mesh(uri: str, robot_file: Path, package_dirs: Sequence[str | Path] = ()) -> str | None:
    """Return the path of the first place that has the file, or None."""
    for candidate in _candidates(uri, robot_file, [Path(d).expanduser() for d in package_dirs]):
        if candidate.is_file():
            return str(candidate.resolve())
    return None


def _candidates(uri: str, robot_file: Path, package_dirs: list[Path]) -> Iterator[Path]:
    parents = list(robot_file.resolve().parents)[:SEARCHED_PARENTS]
    scheme, _, rest = uri.rpartition("://")
    if scheme == "package":
        package, _, inside = rest.partition("/")
        for folder in [*package_dirs, *parents]:
            yield folder / package / inside
            if folder.name == package:
                yield folder / inside
    elif scheme == "file":
        yield Path(unquote(rest))
        rest = rest.lstrip("/")  # file://meshes/a.stl is found in the wild, meant as a relative path
    elif scheme:
        return  # http:// and others: nothing is fetched
    else:
        yield Path(rest) if Path(rest).is_absolute() else parents[0] / rest
    for folder in [*package_dirs, *parents]:
        yield folder / rest.lstrip("/")
