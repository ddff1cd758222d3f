"""Finds the mesh files that robot files name as package://..., file://... or a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from costate.core.fork import cached_property
from costate.core.reach import is_network, problem, tree_of

SEARCHED_PARENTS = 6
"""Number of folders above the robot file that are searched for a package."""


@dataclass(frozen=True)
class Places:
    """Folders in which the meshes of a robot file are looked for."""

    file: Path
    package_dirs: Sequence[str | Path] = ()

    @cached_property
    def packages(self) -> list[Path]:
        """Folders that may hold packages: those given, and those above the file."""
        given = [Path(folder).expanduser() for folder in self.package_dirs]
        return [*given, *list(self.file.resolve().parents)[:SEARCHED_PARENTS]]

    @cached_property
    def roots(self) -> list[Path]:
        """Folders in which a mesh must be: the tree of the file, also of one that it links to, and those given."""
        given = self.packages[: len(self.package_dirs)]
        return [tree_of(self.file), tree_of(self.file.resolve()), *given]

    def find(self, uri: str) -> tuple[str | None, str]:
        """Return the path of the first place that has the file; or None, and why a file that is there may not be read."""
        refused = ""
        for candidate, roots in self._candidates(uri):
            if not is_network(str(candidate)) and not _exists(candidate):
                continue
            why = problem(candidate, roots)
            if why is None:
                return str(candidate.resolve()), ""
            refused = refused or why
        return None, refused

    def _candidates(self, uri: str) -> Iterator[tuple[Path, list[Path]]]:
        """Yield places of a mesh, each with the folders in which it must be then."""
        scheme, _, rest = uri.rpartition("://")
        if scheme == "package":
            package, _, inside = rest.partition("/")
            for folder in self.packages:
                yield folder / package / inside, [folder]
                if folder.name == package:
                    yield folder / inside, [folder, *self.roots]
        elif scheme == "file":
            if Path(unquote(rest)).is_absolute():
                yield Path(unquote(rest)), self.roots
            rest = rest.lstrip("/")  # file://meshes/a.stl is found in the wild, meant as a relative path
        elif scheme:
            return  # http:// and others: nothing is fetched
        else:
            absolute = Path(rest).is_absolute() or is_network(rest)
            yield Path(rest) if absolute else self.file.resolve().parent / rest, self.roots
        for folder in self.packages:
            yield folder / rest.lstrip("/"), [folder, *self.roots]


def _exists(path: Path) -> bool:
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):  # a name that is too long, or has a null character
        return False
