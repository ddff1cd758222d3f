"""The MJCF files of installed packages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

PACKAGES = ("gymnasium", "dm_control", "gymnasium_robotics")


def mjcf_files(package: str) -> Iterator[tuple[str, Path]]:
    """Yield name and path of every file of a package whose root element is <mujoco>; nothing if the package is not installed."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        return
    folder = Path(next(iter(found.submodule_search_locations)))
    for path in sorted(folder.rglob("*.xml")):
        if _root(path) == "mujoco":
            yield f"{package}/{path.relative_to(folder).as_posix()}", path


def _root(path: Path) -> str | None:
    try:
        return ElementTree.parse(path).getroot().tag
    except ElementTree.ParseError:
        return None
