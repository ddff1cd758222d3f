"""Workers that are processes of this machine."""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from costate.kernel.machine.pipes import receive, send
from costate.scale.pool import LostError, Worker


class LocalWorker(Worker):
    """A process of this machine, and a thread that talks to it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "costate.scale.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self.thread = ThreadPoolExecutor(1)
        self.sent = -1

    def start(self, given: bytes) -> Future[bytes]:
        return self.thread.submit(self._ask, "start", given)

    def shard(self, number: int, shared: bytes | None, shard: bytes) -> Future[bytes]:
        fresh, self.sent = number != self.sent, number
        return self.thread.submit(self._ask, "shard", number, shared if fresh else None, shard)

    def _ask(self, *request: Any) -> bytes:
        assert self.process.stdin and self.process.stdout
        try:
            send(self.process.stdin, marshal.dumps(request))
            return receive(self.process.stdout)
        except (OSError, EOFError, ValueError):  # the last: its pipes were closed
            raise LostError(_end(self.process.wait())) from None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.thread.shutdown(wait=True)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


def _end(code: int) -> str:
    """Say how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    killed = f"was ended by {signal.Signals(-code).name}"
    return f"{killed}, as the system does when memory runs out" if -code == signal.SIGKILL else killed
