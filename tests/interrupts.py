"""Processes that hear an interrupt."""

from __future__ import annotations

import signal


def listen_to_interrupts() -> None:
    """For a child before it starts: what a shell runs in the background inherits deaf ears for SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
