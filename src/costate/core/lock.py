"""A lock on a folder that ends with the process that holds it, however it ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the folder; refuse if another process does."""
    with open(folder / "lock", "a+b") as file:
        try:
            _acquire(file.fileno())
        except OSError:
            raise ValueError(f"{folder} is in use: another training writes to it; wait for it or stop it") from None
        yield


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
