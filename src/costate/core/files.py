"""Files that are either whole or absent: written next to their place, then moved into it.

- `write_atomically`, `write_text` and `write_json` are for a user's files: they reach the disk before they replace an older one.
- `write_private` is for caches: only the owner may read them, and nobody waits for the disk. `seal` puts a checksum in front
  of the content, and `unseal` refuses what is not what was written.
- `locked` keeps other processes out of a folder; `in_turn` lets them do the same thing one after the other.
- `folder_of` makes a temporary folder that exists as long as its owner.

Tensors are in `core.tensors`, so that nothing here needs torch.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_origin, get_type_hints

T = TypeVar("T")

_DIGEST = hashlib.sha256().digest_size


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call write(temporary path), then move the file into its place: it is whole even after a crash of the machine."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        kept = "the one there is unchanged" if path.exists() else "nothing was written"
        raise OSError(error.errno, f"cannot write {path}: {error.strerror or error}; {kept}") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8, lines as given) atomically."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline=""))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def write_private(path: Path, data: bytes) -> None:
    """Write a file of a cache atomically, readable by its owner only; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")  # created with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def checksum(*parts: bytes) -> str:
    """Return the SHA-256 of the joined parts as hexadecimal digits."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()


def seal(data: bytes) -> bytes:
    """Return data with its checksum in front."""
    return hashlib.sha256(data).digest() + data


def unseal(content: bytes) -> bytes:
    """Return the data that was sealed; raise ValueError if a byte has changed."""
    data = content[_DIGEST:]
    if hashlib.sha256(data).digest() != content[:_DIGEST]:
        raise ValueError("damaged: the content is not what was written")
    return data


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder, until this one leaves the block or ends, however it ends."""
    with open(folder / "lock", "a+b") as file:
        try:
            _acquire(file.fileno())
        except OSError:
            raise ValueError(f"{folder} is in use: another process writes to it; wait for it or stop it") from None
        yield


@contextmanager
def in_turn(path: Path, seconds: float) -> Iterator[bool]:
    """Wait until no other process is in a block of this lock file; yield False if that took too long, or cannot be known.

    The system frees the lock of a process that ends, however it ends. The file is removed by whoever leaves the block: two
    processes may then both be in it, if a third comes at that moment. So the block must look first whether its work is done.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = open(path, "a+b")  # noqa: SIM115  (closed below)
    except OSError:
        yield False
        return
    with file:
        if not _acquired(file.fileno(), seconds):
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)
            _release(file.fileno())  # closing alone would leave it to a forked child that has the file, too


def _acquired(descriptor: int, seconds: float) -> bool:
    """Try to lock a file until it is free; return whether it was in time."""
    end, pause = time.monotonic() + seconds, 0.01
    while True:
        try:
            _acquire(descriptor)
            return True
        except OSError as error:
            if error.errno not in _TAKEN or time.monotonic() > end:  # other errors: a file system without locks
                return False
        time.sleep(pause)
        pause = min(1.5 * pause, 0.25)


_TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""Errors that say that another process has the lock."""

if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def from_json(kind: type[T], value: Any, path: Path) -> T:
    """Return a dataclass, perhaps with others inside, from what `asdict` made of it; missing fields take their defaults."""
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected the fields of {kind.__name__}, got {value!r}")
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    if unknown := sorted(set(value) - known):
        raise ValueError(f"{path}: {kind.__name__} has no field {unknown[0]!r}; was this written by another version?")
    given = {name: _plain(hints[name], v, f"{path}: {kind.__name__}.{name}", path) for name, v in value.items()}
    try:
        return kind(**given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _plain(kind: Any, value: Any, where: str, path: Path) -> Any:
    if is_dataclass(kind):
        return from_json(kind, value, path)  # pyright: ignore[reportArgumentType]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(value)
    allowed = _KINDS.get(kind, (object,))
    if (type(value) not in allowed and object not in allowed) or (isinstance(value, float) and math.isnan(value)):
        raise ValueError(f"{where} is {value!r}; expected {kind.__name__}")
    return value


_KINDS: dict[Any, tuple[type, ...]] = {int: (int,), float: (int, float), bool: (bool,), str: (str,)}
"""Types that JSON may have for a field of a given type."""


def folder_of(owner: object) -> Path:
    """Return a new temporary folder, which is removed together with its owner, without a warning."""
    folder = tempfile.mkdtemp(prefix="costate-")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
