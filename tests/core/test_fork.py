"""Locks and cached properties in forked processes."""

from __future__ import annotations

import multiprocessing
import sys
import threading

import pytest

from costate.core.fork import cached_property, lock

LIMIT = 300
"""Seconds after which a process counts as hanging, on a busy machine, too."""


class Once:
    def __init__(self) -> None:
        self.calls = 0
        self.entered, self.go_on = threading.Event(), threading.Event()

    @cached_property
    def value(self) -> int:
        self.calls += 1
        self.entered.set()
        self.go_on.wait(LIMIT)
        return 42


def test_a_cached_property_is_computed_once() -> None:
    once = Once()
    once.go_on.set()
    assert (once.value, once.value, once.calls) == (42, 42, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_locks_held_by_other_threads_are_free_in_a_child() -> None:
    once, held = Once(), lock()
    done = threading.Event()

    def hold() -> None:
        with held:
            assert once.value == 42
            done.wait(LIMIT)

    thread = threading.Thread(target=hold)
    thread.start()
    assert once.entered.wait(LIMIT)
    ours, theirs = multiprocessing.get_context("fork").Pipe(False)

    def child() -> None:
        once.go_on.set()
        free = held.acquire(timeout=LIMIT)
        theirs.send((free, once.value))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert ours.poll(LIMIT), "the child hangs"
    assert ours.recv() == (True, 42)
    process.join(LIMIT)
    once.go_on.set()
    done.set()
    thread.join(LIMIT)
