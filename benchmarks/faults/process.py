"""Tools of the studies of faults: child processes, measured in processor time as the machine may be busy; progress."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
SAY = 30.0
"""Seconds between two lines of progress, where there is no terminal."""


def cpu_seconds(process: int) -> float:
    """Processor time a process has taken; 0 if it is no more."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Child:
    """A function in a forked process: what is imported here is there at once.

    It leads a session of its own, so that what helps it to compile is killed with it, as in a crash of the machine.
    """

    def __init__(self, work: Callable[[], object]):
        ours, theirs = os.pipe()
        sys.stdout.flush()
        self.process = os.fork()
        if not self.process:
            os.close(ours)
            _live(work, theirs)
        os.close(theirs)
        self._words, self.cpu = ours, 0.0
        self.code: int | None = None

    def wait(self, cpu: float | None = None) -> bool:
        """Wait until it ends, or has used so much processor time [s]; tell whether it has ended."""
        if self.code is not None:
            return True
        while cpu is None or self._used() < cpu:
            process, status, usage = os.wait4(self.process, 0 if cpu is None else os.WNOHANG)
            if process:
                self.code, self.cpu = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
                return True
            time.sleep(0.0005)
        return False

    def _used(self) -> float:
        """Read the processor time of its main thread, to the nanosecond."""
        return int(Path(f"/proc/{self.process}/schedstat").read_text().split()[0]) / 1e9

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        self.wait()

    def words(self) -> str:
        """Read what it printed, and its error if it failed."""
        with open(self._words, errors="replace") as file:
            return file.read()


def _live(work: Callable[[], object], output: int) -> None:
    """The whole life of a child."""
    code = 1
    try:
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def answer(child: Child) -> str:
    """The last line it prints; its error if it fails."""
    words = child.words()
    if not child.wait() or child.code:
        raise RuntimeError(words)
    return words.strip().splitlines()[-1]


def track(items: Sequence[T], title: str) -> Iterator[T]:
    """The items, with a bar on a terminal, else a line now and then."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import track as bar

        yield from bar(items, title, console=Console(stderr=True))
        return
    begun = said = time.monotonic()
    for k, item in enumerate(items):
        if time.monotonic() - said > SAY:
            said = time.monotonic()
            print(f"{title}: {k:,} of {len(items):,} after {said - begun:.0f} s", file=sys.stderr, flush=True)
        yield item
