"""Reads files of unknown origin in a process of its own, with limits of time and memory.

Libraries that read files may hang, fill memory or crash in ways that no check of the file foresees. There, the process that
reads is lost, and this one says why.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from costate.core.limits import exceeded, limit

REFUSED = 3
"""Exit code of a script that has printed why it refuses its file."""
OVERHEAD_MB = 1024
"""Address space of an interpreter with its libraries, beyond the limit of memory."""
_WAIT = 5
"""Seconds on the clock per second of processor time that is allowed: the machine may be busy."""
_NO_MEMORY = ("bad_alloc", "MemoryError", "allocate", "out of memory")
"""Words of libraries that were refused memory."""


class RefusedError(ValueError):
    """A file that the script refuses, in its own words."""


def run_confined(script: Path, arguments: Sequence[str | Path]) -> str:
    """Run a script in a process of its own, and return what it prints.

    Raises a RefusedError if it ends with the exit code `REFUSED`, and a ValueError that names the limit if it exceeds one.
    """
    seconds = limit("read_seconds")
    command = [sys.executable, "-P", str(Path(__file__).with_name("confine.py"))]
    command += [str(seconds), str(limit("read_memory_mb") + OVERHEAD_MB), str(script), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "MUJOCO_GL": "disable"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_WAIT * seconds + 10,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(exceeded("read_seconds")) from None
    if ended.returncode:
        raise _error(ended)
    return ended.stdout


def _error(ended: subprocess.CompletedProcess[str]) -> ValueError:
    words = f"{ended.stdout}\n{ended.stderr}"
    if ended.returncode == -getattr(signal, "SIGXCPU", 0):
        return ValueError(exceeded("read_seconds"))
    if any(word in words for word in _NO_MEMORY):
        return ValueError(exceeded("read_memory_mb"))
    if ended.returncode == REFUSED:
        return RefusedError(ended.stdout.strip())
    last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return ValueError(f"the process that reads it ended with {_ending(ended.returncode)}: {last[:300]}")


def _ending(code: int) -> str:
    names = {-s: s.name for s in signal.Signals}
    return names.get(code, f"exit code {code}")
