"""Compiling chunks in parallel. LLVM compiles under one lock per process, so the helpers are processes.

Small kernels are compiled here and now. For larger ones, worker processes (`python -m costate.kernel.machine.worker`) share
the jobs with this process. A worker that dies costs nothing but time: its job is done here.
"""

from __future__ import annotations

import atexit
import marshal
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence

from costate.kernel.codegen.chunks import Chunk
from costate.kernel.machine.pipes import receive, send
from costate.kernel.machine.target import Target
from costate.kernel.machine.worker import Job, job_object

PARALLEL_FROM = 4
"""Chunks from which worker processes are worth starting."""


def compile_chunks(groups: Sequence[Sequence[Chunk]], target: Target, dtype: str) -> list[bytes]:
    """Return the object file of each group of chunks."""
    jobs = [make_job(chunks, target, dtype) for chunks in groups]
    if sum(map(len, groups)) < PARALLEL_FROM:
        return [job_object(j) for j in jobs]
    return _pool().run(jobs)


def make_job(chunks: Sequence[Chunk], target: Target, dtype: str) -> Job:
    """Write the chunks of one object file as plain data."""
    return (
        [(c.name, c.n_inputs, c.n_outputs, c.body, c.loads, c.saves, c.stores) for c in chunks],
        (target.triple, target.cpu, target.features, target.register, target.block, target.level),
        dtype,
    )


class WorkerPool:
    """Worker processes, started when first needed and ended with this process."""

    def __init__(self, size: int):
        self.pid = os.getpid()
        self.size = size
        self.processes: list[subprocess.Popen[bytes]] = []
        self.lock = threading.Lock()
        atexit.register(self.close)

    def run(self, jobs: list[Job]) -> list[bytes]:
        """Compile all jobs, shared among the processes and this one."""
        with self.lock:
            self._start()
            todo: queue.SimpleQueue[int] = queue.SimpleQueue()
            for k in range(len(jobs)):
                todo.put(k)
            done: list[bytes | None] = [None] * len(jobs)
            threads = [threading.Thread(target=_serve, args=(p, jobs, todo, done)) for p in self.processes]
            try:
                for t in threads:
                    t.start()
                _take(todo, lambda k: done.__setitem__(k, job_object(jobs[k])))
                for t in threads:
                    t.join()
            except BaseException:  # interrupted: the threads would go on, and this process with them
                _take(todo, lambda k: None)
                self._kill()
                raise
            self.processes = [p for p in self.processes if p.poll() is None]
            return [d if d is not None else job_object(jobs[k]) for k, d in enumerate(done)]

    def _start(self) -> None:
        """Start as many processes as wanted, or as the system allows."""
        try:
            while len(self.processes) < self.size:
                self.processes.append(_start_worker())
        except OSError:
            return

    def close(self) -> None:
        """End the processes, unless they belong to a parent of this one."""
        if os.getpid() == self.pid:
            self._kill()

    def _kill(self) -> None:
        for p in self.processes:
            p.kill()
            p.wait()
        self.processes = []

    def abandon(self) -> None:
        """Let go of the pipes in a forked child, whose processes these are not: so they end with their owner."""
        for p in self.processes:
            p.returncode = 0  # nothing to wait for
            for pipe in (p.stdin, p.stdout):
                if pipe:
                    pipe.close()
        self.processes = []


def _start_worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "costate.kernel.machine.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,  # what a buffer holds would be written once more by a forked child
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _take(todo: queue.SimpleQueue[int], work) -> None:
    while True:
        try:
            k = todo.get_nowait()
        except queue.Empty:
            return
        work(k)


def _serve(process: subprocess.Popen[bytes], jobs: list[Job], todo, done: list[bytes | None]) -> None:
    """Send jobs to one worker process until no jobs are left. If it dies, its job is left to the caller."""
    assert process.stdin and process.stdout
    try:
        while True:
            k = todo.get_nowait()
            send(process.stdin, marshal.dumps(jobs[k]))
            done[k] = receive(process.stdout)
    except queue.Empty:
        return
    except (OSError, EOFError):
        process.kill()


_pools: list[WorkerPool] = []


def _pool() -> WorkerPool:
    """Return this process's pool; a forked child gets its own."""
    if not _pools:
        _pools.append(WorkerPool(_helpers()))
    return _pools[0]


def _helpers() -> int:
    """Return how many processes help: COSTATE_COMPILERS, or one for every other core."""
    given = os.environ.get("COSTATE_COMPILERS")
    if given is not None and not given.isdecimal():
        raise ValueError(f"COSTATE_COMPILERS is {given!r}; expected a number of processes, such as 0 or 3")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    return max(cores - 1, 1) if given is None else int(given)


def _leave_pools() -> None:
    while _pools:
        _pools.pop().abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_pools)
