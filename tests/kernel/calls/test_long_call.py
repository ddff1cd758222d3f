"""Calls that worker threads compute: errors, stops, and what is held meanwhile."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
import torch

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.calls import native
from costate.kernel.calls.long_call import LongCall
from costate.kernel.calls.native import NativeCode
from costate.kernel.calls.threads import Workers


class Held:
    """Something that a call needs."""


def test_every_part_is_computed_once() -> None:
    done: list[tuple[int, int]] = []
    parts = [(k, k + 1) for k in range(100)]
    Workers().run(LongCall(lambda a, b, _: done.append((a, b)), parts, None), 3)
    assert sorted(done) == parts


def test_an_error_in_a_worker_is_raised_by_the_caller() -> None:
    def fails(begin: int, end: int, stop: int) -> None:
        if begin == 2:
            raise MemoryError("no room")

    workers = Workers()
    with pytest.raises(MemoryError, match="no room"):
        workers.run(LongCall(fails, [(k, k + 1) for k in range(9)], None), 2)
    done: list[int] = []
    workers.run(LongCall(lambda a, b, _: done.append(a), [(0, 1)], None), 2)  # they live on
    assert done == [0]


def test_what_a_call_needs_is_held_until_its_workers_have_left() -> None:
    """Even if nobody waits for them any more."""
    held = Held()
    alive = weakref.ref(held)
    inside, go = threading.Event(), threading.Event()
    call = LongCall(lambda *_: (inside.set(), go.wait()), [(0, 1)], held)
    worker = threading.Thread(target=call.work)
    worker.start()
    inside.wait()
    call.stop()
    del held
    gc.collect()
    assert alive() is not None and not call.ended
    go.set()
    worker.join()
    gc.collect()
    assert alive() is None and call.ended


def test_workers_that_come_late_find_a_closed_door() -> None:
    done: list[int] = []
    call = LongCall(lambda a, b, _: done.append(a), [(0, 1)], None)
    call.stop()
    call.work()
    assert call.ended and done == []


def test_calls_do_not_wait_for_the_workers_of_others() -> None:
    workers, go = Workers(), threading.Event()
    waiting = threading.Thread(target=lambda: workers.run(LongCall(lambda *_: go.wait(), [(0, 1)], None), 1))
    waiting.start()
    done: list[int] = []
    workers.run(LongCall(lambda a, b, _: done.append(a), [(0, 1)], None), 1)
    assert done == [0] and waiting.is_alive()
    go.set()
    waiting.join()


@pytest.fixture
def loop() -> Kernel:
    """A kernel of 1000 steps x' = x + 1."""
    x = ca.SX.sym("x", 2)
    b = ProgramBuilder("loop")
    (end,), _, _ = b.scan(ca.Function("body", [x], [x + 1]), 1000, b.input("x", 2), [])
    b.output("y", end)
    return b.kernel()


def test_code_reads_the_stop_flag(loop: Kernel) -> None:
    """Before the first block, and the step of a loop after it was set."""
    code = loop.code()
    x, y = np.zeros((16, 2)), np.zeros((16, 2))
    words = [0]
    for array in (x, y):
        words += [array.ctypes.data, 1 << 62, 0, 16, 0, 0]
    flag = ctypes.c_int64(1)
    code._range(0, 16, ctypes.addressof(flag), words)
    assert not y.any()
    flag.value = 0
    code._range(0, 16, ctypes.addressof(flag), words)
    assert (y == 1000).all()


def test_calls_that_end_early_stay_on_the_calling_thread(loop: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop may take many more steps than it mostly does: after some calls it is known how long it takes."""
    long: list[int] = []
    original = NativeCode._run_long
    monkeypatch.setattr(NativeCode, "_run_long", lambda self, *a: (long.append(1), original(self, *a)))
    code = loop.code()
    code.artifact = replace(code.artifact, work=10**9)
    x = torch.zeros(1, 2, dtype=torch.float64)
    for _ in range(60):
        assert (loop(x=x).y == 1000).all()
    assert 0 < len(long) < 60
    seen = len(long)
    code.seconds_per_op = 1.0  # it took long: back to the workers
    loop(x=x)
    assert len(long) == seen + 1


@pytest.mark.parametrize("threads", [1, 2])
def test_long_calls_give_the_same_bits(loop: Kernel, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On worker threads and on the caller's; as tensors, NumPy arrays, and arrays bound."""
    before = torch.get_num_threads()
    x = torch.rand(200, 2, dtype=torch.float64)
    expected = loop(x=x).y
    try:
        torch.set_num_threads(threads)
        monkeypatch.setattr(native, "BRIEF", 0.0)
        monkeypatch.setattr(native, "THREAD_GAIN_OPS", 0)
        fresh = Kernel.of_recipe(loop._recipe)
        bound = fresh.bind(x=x.numpy())
        bound()
        for found in (fresh(x=x).y, fresh.numpy(x=x.numpy()).y, bound.outputs.y):
            assert np.array_equal(expected, found)
    finally:
        torch.set_num_threads(before)
