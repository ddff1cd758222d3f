"""Long calls: worker threads compute, while the caller waits and can be interrupted.

The work is cut into parts. Each worker takes the next part until none is left, or until the call is stopped: compiled code reads
a flag in memory, and returns soon after it was set. The call holds everything that the code reads and writes, so that nothing is
freed under a worker's hands, wherever in the caller an exception appears.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterable

POLL = 0.05
"""Seconds after which a waiting caller looks for what does not wake it: exceptions sent to its thread, and forks."""
PATIENCE = 10.0
"""Seconds that an interrupted caller waits for workers at most. They need milliseconds."""
Part = tuple[int, int]
"""First sample, and the one after the last."""


class LongCall:
    """The work of one call, and everything it needs."""

    def __init__(self, compute: Callable[[int, int, int], object], parts: Iterable[Part], holds: object):
        """Prepare the work: compute(begin, end, address of the stop flag) for every part."""
        self._compute = compute
        self._parts = iter(list(parts))
        self._holds = holds
        self._flag = ctypes.c_int64(0)
        self._lock = threading.Lock()
        self._running = 0
        self._closed = False
        self._error: BaseException | None = None
        self._ended = threading.Lock()
        self._ended.acquire()

    def work(self) -> None:
        """Compute parts until none is left. Any number of threads may do so."""
        with self._lock:
            if self._closed:
                return
            self._running += 1
        try:
            flag = ctypes.addressof(self._flag)
            for begin, end in self._parts:
                if self._flag.value:
                    break
                self._compute(begin, end, flag)
        except BaseException as error:  # the caller raises it
            self._error = error
            self._flag.value = 1
        finally:
            with self._lock:
                self._running -= 1
                self._close()

    def stop(self, reason: BaseException | None = None) -> None:
        """Let the workers end soon; the caller raises the reason."""
        self._error = self._error or reason
        self._flag.value = 1
        with self._lock:
            if not self._closed:
                self._close()

    def _close(self) -> None:
        """Let no more workers in, and the caller go if there are none."""
        self._closed = True
        if not self._running:
            self._holds = None
            self._ended.release()

    @property
    def ended(self) -> bool:
        """True if all workers have left, and none will come."""
        return self._closed and not self._running

    def run(self, start: Callable[[], None]) -> None:
        """Start workers and wait for them. Whatever interrupts this stops them, and waits until they have ended."""
        process = os.getpid()
        try:
            start()
            while not self._ended.acquire(timeout=POLL):
                if os.getpid() != process:
                    raise RuntimeError(
                        "this process was forked in the middle of a call of compiled code, whose threads belong to the parent: "
                        "call it again"
                    )
        except BaseException:
            self._flag.value = 1
            if os.getpid() == process:
                self._wait_out()
            raise
        if self._error is not None:
            raise self._error

    def _wait_out(self) -> None:
        """Stop, and wait for the workers even if more interrupts come: they take milliseconds to end."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                self.stop()
                if self._ended.acquire(timeout=POLL):
                    return
            except BaseException:  # the first one is raised
                continue
