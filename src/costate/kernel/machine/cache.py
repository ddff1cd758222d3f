"""Compiled kernels on disk.

An entry is one file named by its key: a digest of program, derivative, number type, CPU, versions and the compiler's own source.
It is written to a temporary file and renamed, so readers never see half of one; its checksum is verified before the code is
loaded; it must belong to the user and be writable by nobody else. Whatever is wrong with an entry, it is compiled anew. Trouble
with the disk is a warning, never a failure.

`COSTATE_CACHE` moves the folder, or switches the cache off when it is empty; `COSTATE_CACHE_LIMIT` is its size limit in bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from costate.kernel.ir.program import digest
from costate.kernel.machine.artifact import Artifact
from costate.kernel.machine.target import Target

MAGIC = b"costate kernel 1\n"
DEFAULT_LIMIT = 2 << 30


@dataclass(frozen=True)
class CacheInfo:
    """What the cache holds."""

    path: Path
    entries: int
    bytes: int
    limit: int


def cache_path() -> Path | None:
    """The cache folder, or None if the cache is switched off."""
    given = os.environ.get("COSTATE_CACHE")
    if given is not None:
        return Path(given).expanduser() if given else None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "costate"


def cache_limit() -> int:
    """Bytes the entries may take."""
    given = os.environ.get("COSTATE_CACHE_LIMIT", str(DEFAULT_LIMIT))
    if not given.isdecimal():
        raise ValueError(f"COSTATE_CACHE_LIMIT is {given!r}; expected a number of bytes, such as {DEFAULT_LIMIT}")
    return int(given)


def cache_info() -> CacheInfo:
    path = cache_path() or Path()
    files = _entries(path) if cache_path() else []
    return CacheInfo(path, len(files), sum(size for _, size, _ in files), cache_limit())


def clear_cache() -> int:
    """Remove all entries; returns how many."""
    path = cache_path()
    files = _entries(path) if path else []
    for file, _, _ in files:
        file.unlink(missing_ok=True)
    return len(files)


def entry_key(recipe_key: str, layout: object, dtype: str, target: Target) -> str:
    return digest(recipe_key, layout, dtype, target, _versions())


def load(key: str) -> Artifact | None:
    """The entry, if it is there, whole and ours."""
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
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path, suffix=".tmp")  # created with mode 0600
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(_encode(artifact, key))
            os.replace(temporary, path / f"{key}.bin")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _shrink(path, cache_limit())
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
        "workspace": artifact.workspace,
        "n_ops": artifact.n_ops,
        "flops": artifact.flops,
        "work": artifact.work,
        "step_work": artifact.step_work,
        "seconds": artifact.seconds,
        "imports": artifact.imports,
        "sizes": [len(i) for i in artifact.images],
    }
    text = json.dumps(head).encode()
    payload = len(text).to_bytes(8, "little") + text + b"".join(artifact.images)
    return MAGIC + hashlib.sha256(payload).digest() + payload


def _decode(data: bytes, key: str) -> Artifact:
    start = len(MAGIC) + 32
    payload = data[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(payload).digest() != data[len(MAGIC) : start]:
        raise ValueError("damaged")
    size = int.from_bytes(payload[:8], "little")
    head = json.loads(payload[8 : 8 + size])
    if head["key"] != key:
        raise ValueError("another kernel's entry")
    images, at = [], 8 + size
    for n in head["sizes"]:
        images.append(payload[at : at + n])
        at += n
    numbers = {name: head[name] for name in ("workspace", "n_ops", "flops", "work", "step_work", "seconds")}
    return Artifact(images=tuple(images), imports=tuple(head["imports"]), **numbers)


def _trusted(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _entries(path: Path) -> list[tuple[Path, int, float]]:
    """(file, size, last use) of all entries."""
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
    """Versions of everything that shapes the code, the compiler's own source included."""
    here = Path(__file__).parent.parent  # of costate.kernel
    source = [p.read_bytes() for p in sorted(here.rglob("*.py"))]
    packages = []
    for name in ("llvmlite", "casadi"):
        try:
            packages.append(version(name))
        except PackageNotFoundError:
            packages.append("?")
    return digest(sys.version_info[:2], *packages, *source)
