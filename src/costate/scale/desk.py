"""The desk of a worker: it makes its work of the first message, and then computes shards. The same in a process and on a node."""

from __future__ import annotations

import os
import platform
import time
import traceback
from importlib.metadata import PackageNotFoundError, version

from costate.core.files import checksum
from costate.kernel.machine.target import host
from costate.scale.executor import Work, work_of
from costate.scale.message import Message

PACKAGES = ("torch", "casadi", "llvmlite", "numpy")
"""Packages that results depend on."""


class Desk:
    """The work of a worker, and the answers to its messages. An error is an answer, too."""

    def __init__(self) -> None:
        self.work: Work | None = None
        self.begun = -1

    def start(self, given: bytes) -> bytes:
        """Make the work; answer who this is, and with which versions."""
        try:
            message = Message.unpacked(given)
            self.work, self.begun = work_of(message), -1
            name = f"{platform.node()}/{os.getpid()}"
            return Message({"worker": name, "versions": versions(), "cpu": host().cpu}).packed()
        except Exception as error:
            return _failed(error)

    def shard(self, number: int, shared: bytes | None, shard: bytes) -> bytes:
        """Compute a shard of a map with a number; what its shards share is taken once."""
        begun = time.process_time()
        try:
            assert self.work is not None
            if number != self.begun and shared is not None:
                self.work.begin(Message.unpacked(shared))
            self.begun = number
            found = self.work.shard(Message.unpacked(shard))
            note = {**found.note, "processor_seconds": time.process_time() - begun}
            return Message(note, found.tensors).packed()
        except Exception as error:
            return _failed(error)


def _failed(error: Exception) -> bytes:
    kinds = {"user": (ValueError, OSError, ImportError), "memory": (MemoryError,)}
    kind = next((name for name, classes in kinds.items() if isinstance(error, classes)), "")
    if "not enough memory" in str(error) or "can't allocate memory" in str(error):  # as torch says it
        kind = "memory"
    text = str(error) if kind == "user" else "".join(traceback.format_exception(error))
    return Message({"error": text, "kind": kind}).packed()


def versions() -> dict[str, str]:
    """Return the versions of all that results depend on, and a digest of this package's own source."""
    from pathlib import Path

    import costate

    folder = Path(costate.__file__).parent
    source = checksum(*(p.read_bytes() for p in sorted(folder.rglob("*.py"))))
    found = {"costate": costate.__version__, "source": source[:12], "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "?"
    return found
