"""Compiled kernels on disk.

An entry is one file named by its key: a digest of program, derivative, number type, CPU, versions and the compiler's own source.
It is written to a temporary file and renamed, so readers never see half of one; its checksum is verified before the code is
loaded; it must belong to the user and be writable by nobody else. Whatever is wrong with an entry, it is compiled anew. Trouble
with the disk is a warning, never a failure. Of several processes that want the same entry one compiles it, and the others wait.

`COSTATE_CACHE` moves the folder, or switches the cache off when it is empty; `COSTATE_CACHE_LIMIT` is its size limit in bytes.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from costate.core.files import in_turn, seal, unseal, write_private
from costate.kernel.ir.program import digest
from costate.kernel.machine.artifact import Artifact
from costate.kernel.machine.target import Target

MAGIC = b"costate kernel 1\n"
DEFAULT_LIMIT = 2 << 30
"""Size of the cache [bytes] unless COSTATE_CACHE_LIMIT says otherwise."""
LOOK = 0.01
"""Part of the limit that a process may store before it looks again at how much there is: a folder has thousands of entries."""
PATIENCE = 600.0
"""Time after which a process no longer waits for another one that compiles the same kernel, and compiles it itself [s]."""
_unseen: dict[Path, int] = {}
"""Bytes that were stored in a folder since it was looked at; the first entry of a process looks."""
_NUMBERS = ("workspace", "helper_workspace", "n_ops", "flops", "work", "step_work", "seconds")


@dataclass(frozen=True)
class CacheInfo:
    """The cache's folder, and the number and size of its entries."""

    path: Path
    entries: int
    bytes: int
    limit: int


def cache_path() -> Path | None:
    """Return the cache folder, or None if the cache is switched off."""
    given = os.environ.get("COSTATE_CACHE")
    if given is not None:
        return Path(given).expanduser() if given else None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "costate"


def cache_limit() -> int:
    """Return how many bytes the entries may take."""
    given = os.environ.get("COSTATE_CACHE_LIMIT", str(DEFAULT_LIMIT))
    if not given.isdecimal():
        raise ValueError(f"COSTATE_CACHE_LIMIT is {given!r}; expected a number of bytes, such as {DEFAULT_LIMIT}")
    return int(given)


def cache_info() -> CacheInfo:
    """Look at the cache folder."""
    path = cache_path() or Path()
    files = _entries(path) if cache_path() else []
    return CacheInfo(path, len(files), sum(size for _, size, _ in files), cache_limit())


def clear_cache() -> int:
    """Remove all entries; return how many."""
    path = cache_path()
    files = _entries(path) if path else []
    for file in (*(file for file, _, _ in files), *(path.glob("*.lock") if path else ())):
        file.unlink(missing_ok=True)
    return len(files)


def entry_key(recipe_key: str, layout: object, dtype: str, target: Target) -> str:
    """Return the name of an entry: a digest of everything that the object code depends on."""
    return digest(recipe_key, layout, dtype, target, _versions())


def obtained(key: str, make: Callable[[], Artifact]) -> Artifact:
    """Return the entry: from disk, from another process that is just compiling it, or made here and stored."""
    artifact, path = load(key), cache_path()
    if artifact is not None:
        return artifact
    if path is None:
        return make()
    with in_turn(path / f"{key}.lock", PATIENCE):
        artifact = load(key)
        if artifact is None:
            artifact = make()
            store(key, artifact)
        return artifact


def load(key: str) -> Artifact | None:
    """Return the entry, if it is there, whole, and the user's own."""
    path = cache_path()
    if path is None:
        return None
    file = path / f"{key}.bin"
    try:
        with open(file, "rb") as f:
            if not _trusted(os.fstat(f.fileno())):
                return None
            data = f.read()
        artifact = _decode(data, key)
        os.utime(file)
        return artifact
    except (OSError, ValueError, KeyError):
        return None


def store(key: str, artifact: Artifact) -> None:
    """Write the entry atomically; warn if that is not possible."""
    path = cache_path()
    if path is None:
        return
    try:
        data = MAGIC + seal(_encode(artifact, key))
        write_private(path / f"{key}.bin", data)
        limit = cache_limit()
        _unseen[path] = _unseen.get(path, limit) + len(data)
        if _unseen[path] >= LOOK * limit:
            _shrink(path, limit)
            _unseen[path] = 0
    except OSError as error:
        warnings.warn(
            f"compiled kernels cannot be stored in {path} ({error.strerror}); they are compiled again next time. "
            f"Set COSTATE_CACHE to a folder you can write to, or to nothing to switch the cache off.",
            RuntimeWarning,
            stacklevel=2,
        )


def _encode(artifact: Artifact, key: str) -> bytes:
    head = {
        "key": key,
        **{name: getattr(artifact, name) for name in _NUMBERS},
        "imports": artifact.imports,
        "sizes": [len(i) for i in artifact.images],
    }
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(artifact.images)


def _decode(data: bytes, key: str) -> Artifact:
    if not data.startswith(MAGIC):
        raise ValueError("damaged: this is no compiled kernel")
    payload = unseal(data[len(MAGIC) :])
    size = int.from_bytes(payload[:8], "little")
    head = json.loads(payload[8 : 8 + size])
    if head["key"] != key:
        raise ValueError("another kernel's entry")
    images, at = [], 8 + size
    for n in head["sizes"]:
        images.append(payload[at : at + n])
        at += n
    numbers = {name: head[name] for name in _NUMBERS}
    return Artifact(images=tuple(images), imports=tuple(head["imports"]), **numbers)


def _trusted(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _entries(path: Path) -> list[tuple[Path, int, float]]:
    """Return (file, size, last use) of all entries."""
    found = []
    try:
        for entry in os.scandir(path):
            if entry.name.endswith((".bin", ".tmp")):
                status = entry.stat()
                found.append((Path(entry.path), status.st_size, status.st_mtime))
    except FileNotFoundError:
        pass
    return found


def _shrink(path: Path, limit: int) -> None:
    """Drop the entries used longest ago until the rest fits."""
    files = sorted(_entries(path), key=lambda e: e[2])
    total = sum(size for _, size, _ in files)
    for file, size, _ in files[:-1]:
        if total <= limit:
            return
        file.unlink(missing_ok=True)
        total -= size


@cache
def _versions() -> str:
    """Return a digest of everything that shapes the code, the compiler's own source included."""
    here = Path(__file__).parent.parent  # of costate.kernel
    source = [p.read_bytes() for p in sorted(here.rglob("*.py"))]
    packages = []
    for name in ("llvmlite", "casadi"):
        try:
            packages.append(version(name))
        except PackageNotFoundError:
            packages.append("?")
    return digest(sys.version_info[:2], *packages, *source)
