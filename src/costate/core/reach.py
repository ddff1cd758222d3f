"""Decides which files a robot file may lead to: those of its own tree and of packages, and of these only regular files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

TOLD = "COSTATE_ROBOT_DIRS"
"""Environment variable with further folders that robot files may read from, separated as in PATH."""
CLIMB = 3
"""Number of folders above its own that belong to the tree of a robot file, if no marker says where the tree begins."""
_MARKERS = ("package.xml", ".git", "pyproject.toml", "setup.py")
"""Files that mark the folder of a whole package or project."""
_MARKED = 6
"""Number of folders above a file that are searched for markers."""
_SPECIAL = ("proc", "dev", "sys")
"""Folders of the system in which files are no data."""


def tree_of(file: Path) -> Path:
    """Return the folder that a robot file belongs to, with its meshes: ../meshes must be in it, /etc must not.

    It is the nearest folder above the file that is marked as a package or project, else the one three folders up; but never
    one that holds the user's home or the whole file system.
    """
    folders = list(absolute(file).parents)
    inner = [f for f in folders[: _MARKED + 1] if not _too_high(f)] or folders[:1]
    for folder in inner:
        if any((folder / marker).exists() for marker in _MARKERS):
            return folder
    return inner[: CLIMB + 1][-1]


def problem(path: Path, roots: Collection[Path]) -> str | None:
    """Return why a file may not be read by a robot file with these roots, or None if it may."""
    if is_network(str(path)):
        return "is a network path; copy the file and give its path"
    place = absolute(path)
    if os.path.exists(place) and not os.path.isfile(place):
        return "is not a regular file; FIFOs, devices and folders are not read"
    special = place.resolve().parts[1:2] if os.sep == "/" else ()
    if special and special[0] in _SPECIAL and not any(_inside(root, special[0]) for root in roots):
        return f"is in /{special[0]}, where files are no data"
    if _within(place, (*roots, *told())) or _package(place):
        return None
    return (
        "is outside of the folders of this robot; move it there, or name its folder in the environment variable "
        f"{TOLD} if you trust the file"
    )


def told() -> list[Path]:
    """Return the folders that the user allows besides those of the robot."""
    return [absolute(Path(f).expanduser()) for f in os.environ.get(TOLD, "").split(os.pathsep) if f]


def is_network(name: str) -> bool:
    """Tell whether a name leads to another machine: http://..., //host/..., or \\\\host\\..."""
    return name.replace("\\", "/").startswith("//") or (
        "://" in name and not name.startswith(("package://", "file://"))
    )


def absolute(path: Path) -> Path:
    """Return an absolute path without "..", as written: links that lead elsewhere are the user's own."""
    return Path(os.path.abspath(path))


def _within(place: Path, roots: Iterable[Path]) -> bool:
    return any(root == place or root in place.parents for root in map(absolute, roots))


def _too_high(folder: Path) -> bool:
    home = Path(os.path.expanduser("~"))
    return folder.parent == folder or folder == home or folder in home.parents


def _package(place: Path) -> bool:
    """Tell whether a file is in an installed package of ROS."""
    return any((folder / "package.xml").is_file() for folder in list(place.parents)[:_MARKED])


def _inside(root: Path, special: str) -> bool:
    return absolute(root).resolve().parts[1:2] == (special,)
