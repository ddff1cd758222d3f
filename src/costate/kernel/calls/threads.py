"""Worker threads for long calls.

There are as many as were ever needed at once: a call never waits for the workers of another. They are daemons, so that they do
not keep a process alive that has ended; before its interpreter goes away, their calls are stopped.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from queue import SimpleQueue
from weakref import WeakSet

from costate.kernel.calls.long_call import PATIENCE, LongCall


class Workers:
    """The worker threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the handler of a signal may begin a call while one begins
        self._todo: SimpleQueue[LongCall] = SimpleQueue()
        self._free = 0
        self._made = 0
        self._calls: WeakSet[LongCall] = WeakSet()
        self._closing = False

    def run(self, call: LongCall, threads: int) -> None:
        """Let a number of threads work on a call until it is done."""
        call.run(lambda: self._start(call, threads))

    def _start(self, call: LongCall, threads: int) -> None:
        with self._lock:
            if self._closing and threading.current_thread() is not threading.main_thread():
                raise SystemExit("the process is ending")  # ends the thread
            self._calls.add(call)
            taken = min(threads, self._free)
            self._free -= taken
            try:
                while taken < threads:
                    self._made += 1
                    threading.Thread(target=self._serve, name=f"costate {self._made}", daemon=True).start()
                    taken += 1
            except RuntimeError:  # the system has no more threads, or starts none at the end of the process
                pass
            for _ in range(taken):
                self._todo.put(call)
        if not taken:
            call.work()

    def _serve(self) -> None:
        while True:
            self._serve_one()

    def _serve_one(self) -> None:
        """Compute parts of one call. Its name goes with this frame: an idle thread holds no tensors."""
        call = self._todo.get()
        call.work()
        with self._lock:
            self._free += 1

    def close(self) -> None:
        """Stop the calls of threads that are about to lose their interpreter, and wait until the code has returned."""
        with self._lock:
            self._closing = True
            calls = list(self._calls)
        for call in calls:
            call.stop(SystemExit("the process is ending"))  # ends the thread that waits for it
        deadline = time.monotonic() + PATIENCE
        while not all(call.ended for call in calls) and time.monotonic() < deadline:
            time.sleep(0.005)


_all: list[Workers] = [Workers()]


def workers() -> Workers:
    """Return the worker threads of this process; a forked child starts its own."""
    return _all[0]


def _renew() -> None:
    _all[0] = Workers()


atexit.register(lambda: workers().close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
