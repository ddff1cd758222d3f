"""Processes that should have ended."""

from __future__ import annotations

import time
from pathlib import Path


def is_running(process: int, patience: float = 0.0) -> bool:
    """Tell whether a process is there, and is more than a zombie; if so, after waiting for its end for so many seconds."""
    end = time.monotonic() + patience
    while (running := _state(process) not in "ZX") and time.monotonic() < end:
        time.sleep(0.05)
    return running


def _state(process: int) -> str:
    """Return the letter that /proc has for the state of a process; X if there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
