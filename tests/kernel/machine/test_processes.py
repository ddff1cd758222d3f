"""Calls from several threads at once, and kernels in other processes: fork, spawn, pickling, DataLoader workers."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import casadi as ca
import numpy as np
import pytest
import torch
from tests.kernel import programs
from tests.kernel.programs import every_kind_inputs, same_bits, spring_inputs
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from costate.kernel import Kernel
from costate.kernel import compile as compiler
from costate.kernel.machine import workers as workers_module
from costate.kernel.machine.workers import WorkerPool

LIMIT = 300
"""Seconds after which a process counts as hanging, on a busy machine, too."""


def value_and_gradient(kernel: Kernel, inputs: list[Tensor]) -> list[Tensor]:
    """Outputs and gradients of their sum."""
    leaves = [t.detach().clone().requires_grad_() for t in inputs]
    outs = kernel.apply(leaves)
    grads = torch.autograd.grad([o.sum() for o in outs], leaves)
    return [*(o.detach() for o in outs), *grads]


def assert_same(a: list[Tensor], b: list[Tensor]) -> None:
    for x, y in zip(a, b, strict=True):
        assert same_bits(x, y)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_calls_from_many_threads() -> None:
    """Different kernels, batch sizes and number types at once, each with its own workspace, all with the right bits."""
    kernels = [programs.spring(), programs.every_kind()]
    jobs = []
    for seed in range(24):
        kernel = kernels[seed % 2]
        make = spring_inputs if seed % 2 == 0 else every_kind_inputs
        dtype = torch.float32 if seed % 3 == 0 else torch.float64
        inputs = [t.to(dtype) for t in make(1 + 37 * seed, seed=seed)]
        jobs.append((kernel, inputs, value_and_gradient(kernel, inputs)))
    wrong: list[int] = []
    barrier = threading.Barrier(4)

    def work(offset: int) -> None:
        barrier.wait()
        for k in range(len(jobs) * 3):
            kernel, inputs, expected = jobs[(7 * k + offset) % len(jobs)]
            found = value_and_gradient(kernel, inputs)
            if not all(same_bits(a, b) for a, b in zip(found, expected, strict=True)):
                wrong.append(k)

    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(work, offset) for offset in range(4)]:
            job.result()
    assert not wrong


def test_threads_that_compile_the_same_kernel_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compiled once; nobody sees half of it."""
    compiled: list[str] = []
    original = Kernel.code.__globals__["native_code"]

    def spy(recipe, layout, dtype, *rest):
        compiled.append(dtype)
        return original(recipe, layout, dtype, *rest)

    monkeypatch.setitem(Kernel.code.__globals__, "native_code", spy)
    k = programs.spring()
    inputs = spring_inputs(5)
    barrier = threading.Barrier(6)

    def call(_: int) -> list[Tensor]:
        barrier.wait()
        return list(k.apply(inputs))

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(call, range(6)))
    assert compiled == ["f64"]
    for other in results[1:]:
        assert_same(results[0], other)


# --- processes --------------------------------------------------------------------------------------------------------


def in_child(kernel: Kernel, inputs: list[Tensor], target) -> None:
    """Runs in another process; results travel as NumPy arrays."""
    target.send([t.numpy() for t in value_and_gradient(kernel, inputs)])
    target.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_kernels_in_child_processes(method: str) -> None:
    """A kernel that was used before the fork, threads included, works in the child; under spawn it travels by pickle."""
    kernel = programs.spring()
    inputs = list(spring_inputs(500))
    expected = value_and_gradient(kernel, inputs)
    context: Any = multiprocessing.get_context(method)
    for _ in range(2 if method == "fork" else 1):
        ours, theirs = context.Pipe(False)
        child = context.Process(target=in_child, args=(kernel, inputs, theirs))
        child.start()
        assert ours.poll(LIMIT), "the child did not answer"
        found = [torch.from_numpy(a) for a in ours.recv()]
        child.join(LIMIT)
        assert child.exitcode == 0
        assert_same(found, expected)


def test_fork_with_threads_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent's pool of threads does not exist in the child: it starts its own instead of waiting for ever."""
    monkeypatch.setattr("costate.kernel.calls.native.THREAD_GAIN_OPS", 0)  # share every batch among threads
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        kernel = programs.spring()
        inputs = list(spring_inputs(300))
        expected = [t.numpy() for t in kernel.apply(inputs)]
        ours, theirs = multiprocessing.get_context("fork").Pipe(False)
        child = multiprocessing.get_context("fork").Process(target=plain_call, args=(kernel, inputs, theirs))
        child.start()
        assert ours.poll(LIMIT), "the child hangs"
        for a, b in zip(ours.recv(), expected, strict=True):
            np.testing.assert_array_equal(a, b)
        child.join(LIMIT)
    finally:
        torch.set_num_threads(before)


def plain_call(kernel: Kernel, inputs: list[Tensor], target) -> None:
    torch.set_num_threads(2)
    target.send([t.numpy() for t in kernel.apply(inputs)])


def test_fork_while_another_thread_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child compiles what it needs, the kernel the other thread was at included: no lock is left behind."""
    monkeypatch.setenv("COSTATE_CACHE", "")
    kernels, references = zip(*(large_kernel(50 + k, ops=3000) for k in range(3)), strict=True)
    thread = threading.Thread(target=lambda: [k.code() for k in kernels])
    thread.start()
    context = multiprocessing.get_context("fork")
    children = []
    for k in kernels:
        time.sleep(0.05)
        children.append(context.Process(target=check_in_child, args=(k,)))
        children[-1].start()
    thread.join()
    for child in children:
        child.join(LIMIT)
        assert child.exitcode == 0, "the child hangs" if child.exitcode is None else "wrong in the child"
    x = torch.rand(5, 20, dtype=torch.float64)
    for number, kernel in enumerate(kernels):  # the parent's workers were not disturbed
        torch.testing.assert_close(kernel(x=x).y, references[number](x), rtol=1e-12, atol=1e-13)


def check_in_child(kernel: Kernel) -> None:
    x = np.full(20, 0.5)
    small = Kernel("small", {"x": (s := ca.SX.sym("x", 20))}, {"y": ca.exp(s)})
    np.testing.assert_allclose(small.numpy(x=x).y, np.exp(x), rtol=1e-13)
    assert np.isfinite(kernel.numpy(x=x).y).all()


def test_an_interrupted_compilation_ends(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs that are left are not done, and the workers are not used again: they are in the middle of something."""
    monkeypatch.setenv("COSTATE_CACHE", "")
    kernel, reference = large_kernel(60, ops=4000)
    monkeypatch.setattr(compiler, "JOB_CHUNKS", 1)
    original = workers_module.job_object

    def interrupt(job: Any) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(workers_module, "job_object", interrupt)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        kernel.code()
    for thread in threading.enumerate()[before:]:
        thread.join(LIMIT)
    assert threading.active_count() == before and not pool.processes
    monkeypatch.setattr(workers_module, "job_object", original)
    x = torch.rand(5, 20, dtype=torch.float64)
    torch.testing.assert_close(kernel(x=x).y, reference(x), rtol=1e-12, atol=1e-13)


def test_a_process_pool() -> None:
    kernel = programs.every_kind()
    inputs = list(every_kind_inputs(9))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        found = pool.submit(value_and_gradient, kernel, inputs).result(120)
    assert_same(found, value_and_gradient(kernel, inputs))


@pytest.mark.parametrize("make", [programs.spring, programs.every_kind, lambda: programs.spring().vjp("x", "f")])
def test_pickle(make: Callable[[], Kernel]) -> None:
    """Programs with every kind of stage, and derivatives, survive; name, key and shapes too."""
    kernel = make()
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.rand(6, *s.shape, generator=generator, dtype=torch.float64) for s in kernel.signature.inputs]
    expected = list(kernel.apply(inputs))  # used before it is pickled
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy.signature == kernel.signature
    assert copy.key == kernel.key
    assert_same(list(copy.apply(inputs)), expected)


class Simulated(Dataset):
    """Samples made by a kernel, as a simulator in a data set would."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Tensor:
        x = torch.full((3,), float(index), dtype=torch.float64)
        p, M = (t for t in spring_inputs()[1:])
        return self.kernel(x=x, p=p, M=M).f


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_data_loader_worker(method: str) -> None:
    data = Simulated(programs.spring())
    expected = torch.stack([data[i] for i in range(12)])
    loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context=method, timeout=LIMIT)
    assert same_bits(torch.cat(list(loader)), expected)


# --- the processes that compile ---------------------------------------------------------------------------------------


def large_kernel(seed: int, ops: int = 6000) -> tuple[Kernel, Callable[[Tensor], Tensor]]:
    """Enough chunks for worker processes; different code for every seed."""
    x = ca.SX.sym("x", 20)
    y = x
    for k in range(ops // 40):
        y = ca.sin(y + (seed + k) * 0.01) * x

    def reference(x: Tensor) -> Tensor:
        y = x
        for k in range(ops // 40):
            y = torch.sin(y + (seed + k) * 0.01) * x
        return y

    return Kernel(f"large {seed}", {"x": x}, {"y": y}), reference


def check_large(seed: int) -> None:
    kernel, reference = large_kernel(seed)
    x = torch.rand(5, 20, dtype=torch.float64)
    torch.testing.assert_close(kernel(x=x).y, reference(x), rtol=1e-12, atol=1e-13)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch):
    """A pool of our own, so that no other test's workers suffer."""
    pool = WorkerPool(1)
    monkeypatch.setattr(workers_module, "_pool", lambda: pool)
    yield pool
    pool.close()


def test_a_dead_worker_costs_nothing_but_time(pool: WorkerPool) -> None:
    check_large(1)
    assert len(pool.processes) == 1
    pool.processes[0].kill()
    check_large(2)
    check_large(3)
    assert len(pool.processes) == 1  # a new one


def test_a_worker_that_cannot_start(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    original = subprocess.Popen

    def useless(command, **options):
        return original([sys.executable, "-c", "raise SystemExit(3)"], **options)

    monkeypatch.setattr(workers_module.subprocess, "Popen", useless)
    check_large(4)


def test_a_worker_that_cannot_be_forked(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_, **__):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(workers_module.subprocess, "Popen", fails)
    check_large(5)
