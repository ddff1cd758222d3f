"""Forked processes: a child has its parent's memory, but only the thread that forked.

A lock that another thread holds at that moment is never released in the child. So the locks of Python code are renewed there
(`lock`, `cached_property`). LLVM and CasADi have locks and states of their own, which would be left half changed: a fork waits
until no thread compiles (`COMPILING`).
"""

from __future__ import annotations

import functools
import gc
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_locks: WeakSet[Any] = WeakSet()


class _Compiling:
    """A reentrant lock. While it is held, Python does not look for cycles: compiling makes millions of objects that die without,
    and looking through them all again and again takes a tenth of its time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._collected = False

    def acquire(self) -> None:
        self._lock.acquire()
        if self._depth == 0:
            self._collected = gc.isenabled()
            gc.disable()
        self._depth += 1

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0 and self._collected:
            gc.enable()
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


COMPILING = _Compiling()
"""Lock that is held while CasADi traces, differentiates and lowers one program, or LLVM compiles or links one object file."""


def tracing(function: F) -> F:
    """Let a function hold COMPILING: symbols of CasADi must not be made by two threads at once. It must not wait for threads that
    compile."""

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> Any:
        with COMPILING:
            return function(*args, **named)

    return run  # type: ignore[return-value]


def lock() -> Any:
    """Return a reentrant lock that is free in a forked child."""
    made = threading.RLock()
    _locks.add(made)
    return made


class cached_property(functools.cached_property[T]):  # noqa: N801  (stands in for the one of functools)
    """A functools.cached_property whose lock (one per class until Python 3.12) is free in a forked child."""

    def __init__(self, func: Callable[[Any], T]):
        super().__init__(func)
        self.lock = lock()


def _free_locks() -> None:
    for each in list(_locks):
        each._at_fork_reinit()  # as the standard library does with its own locks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
    os.register_at_fork(before=COMPILING.acquire, after_in_parent=COMPILING.release, after_in_child=COMPILING.release)
