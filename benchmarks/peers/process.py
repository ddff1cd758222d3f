"""A peer's worker as a process: requests go in, answers come out, and no answer takes longer than it may."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.peers.peer import SCRIPTS, Peer

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
}
CACHES = ("COSTATE_CACHE", "WARP_CACHE_PATH", "GS_CACHE_FILE_PATH", "XDG_CACHE_HOME")
"""Environment variables that say where libraries keep what they have compiled."""
TAIL = 300
"""Characters of what a dying worker said."""


class PeerError(Exception):
    """A peer cannot do what was asked; the reason as its text."""


@dataclass(frozen=True)
class _Running:
    """A process, its answers, its log, and a folder of its own."""

    process: subprocess.Popen[bytes]
    answers: queue.SimpleQueue[bytes]
    """Lines; an empty one when there will be no more."""
    log: IO[bytes]
    folder: tempfile.TemporaryDirectory[str]


class Process:
    """A worker, started when it is first asked, and again after it was stopped. cold: with empty caches, on all cores."""

    def __init__(self, peer: Peer, python: Path, cold: bool = False, threads: int = 1):
        self.peer, self.python, self.cold, self.threads = peer, python, cold, threads
        self._running: _Running | None = None

    def ask(self, limit: float, **request: Any) -> dict[str, Any]:
        """The answer to one request; after limit seconds the worker is stopped."""
        if self._running is None:
            self._running = self._start()
        stdin = self._running.process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        answer = json.loads(self._line(self._running, limit))
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def _start(self) -> _Running:
        folder = tempfile.TemporaryDirectory(prefix="costate-bench-")
        log = open(Path(folder.name) / "log", "w+b")  # noqa: SIM115  (closed in stop)
        cold = dict.fromkeys(CACHES, str(Path(folder.name) / "cache")) if self.cold else {}
        process = subprocess.Popen(
            [str(self.python), str(SCRIPTS / "worker.py"), str(self.peer.script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | ONE_THREAD | cold,
            cwd=folder.name,
        )
        if self.threads == 1 and not self.cold:
            _pin(process)
        answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(process.stdout, answers), daemon=True).start()
        return _Running(process, answers, log, folder)

    def _line(self, running: _Running, limit: float) -> bytes:
        try:
            line = running.answers.get(timeout=limit)
        except queue.Empty:
            self.stop()
            raise PeerError(f"no result within {limit:.0f} s") from None
        if not line:
            said = _last_words(running)
            self.stop()
            raise PeerError(said)
        return line

    @property
    def running(self) -> bool:
        return self._running is not None

    def stop(self) -> None:
        if self._running is None:
            return
        r, self._running = self._running, None
        r.process.kill()
        r.process.wait()
        for pipe in (r.process.stdin, r.log):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        r.folder.cleanup()


def _pin(process: subprocess.Popen[bytes]) -> None:
    """Pin a process to one core, where the system can: threads of a library's own then do not help it."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})


def _read(source: IO[bytes], answers: queue.SimpleQueue[bytes]) -> None:
    with source:
        for line in source:
            answers.put(line)
    answers.put(b"")


def _last_words(running: _Running) -> str:
    code = running.process.wait()
    running.log.seek(0)
    lines = running.log.read().decode(errors="replace").strip().splitlines()
    return f"ended with code {code}" + (f": {lines[-1][-TAIL:]}" if lines else "")
