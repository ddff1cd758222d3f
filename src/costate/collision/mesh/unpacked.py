"""Checks mesh files before they are read: regular files only, and a bound on what archives unpack to."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from costate.core.limits import excess, limit

_STREAMS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
"""Readers of compressed files, by the first bytes of such a file."""
_ARCHIVES = (".zip", ".3mf", ".3dxml", ".zae", ".gz", ".tgz", ".bz2", ".xz", ".tar")
_MB = 2**20


def check_mesh_file(path: Path) -> None:
    """Raise an error if a mesh file is no regular file, is too large, or would unpack to too much."""
    if not path.is_file():  # nor a FIFO or a device, which could be read for ever
        what = "this is not a regular file" if path.exists() else "there is no such file"
        raise FileNotFoundError(f"{path}: {what}")
    _bound(path, "mesh_mb", path.stat().st_size)
    if path.suffix.lower() not in _ARCHIVES:
        return
    with path.open("rb") as file:
        start = file.read(6)
    opened = next((o for magic, o in _STREAMS.items() if start.startswith(magic)), None)
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:  # whose reader stops at the size that a member declares
                members = archive.infolist()
            _bound(path, "mesh_unpacked_mb", sum(m.file_size for m in members))
            _refuse_nested(path, (m.filename for m in members))
        elif opened:
            _count(path, opened)
            _refuse_nested(path, _names(path))
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise ValueError(f"{path} is a damaged archive: {error!r}") from error


def _bound(path: Path, name: str, size: int) -> None:
    if problem := excess(name, size / _MB):
        raise ValueError(f"{path}: {problem}")


def _count(path: Path, opened: Callable[..., Any]) -> None:
    """Unpack a file piece by piece, keeping nothing, until the limit."""
    size = 0
    with opened(path, "rb") as stream:
        while size <= limit("mesh_unpacked_mb") * _MB and (piece := stream.read(_MB)):
            size += len(piece)
    _bound(path, "mesh_unpacked_mb", size)


def _names(path: Path) -> list[str]:
    if not tarfile.is_tarfile(path):
        return [path.stem]
    with tarfile.open(path) as archive:
        return archive.getnames()


def _refuse_nested(path: Path, names: Iterable[str]) -> None:
    for name in names:
        if name.lower().endswith(_ARCHIVES):
            raise ValueError(f"{path}: the archive {name[:60]!r} inside of an archive is not unpacked; unpack it first")
