"""Works and workers for tests: what a worker does, in a thread of this process, with everything packed as it would travel."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch

from costate.scale.desk import Desk
from costate.scale.executor import Work
from costate.scale.message import Message
from costate.scale.pool import LostError, Worker

SQUARES = Message({"work": "tests.scale.threads:Squares"})
NUMBERS = [Message({"number": k}) for k in range(12)]


class Squares(Work):
    """Squares of numbers, times what is shared."""

    def __init__(self, given: Message):
        self.factor = torch.ones(())

    def begin(self, shared: Message) -> None:
        self.factor = shared.tensors["factor"]

    def shard(self, shard: Message) -> Message:
        number = shard.note["number"]
        if number == "memory":
            raise MemoryError
        if number == "print":
            print("a task may print", flush=True)
            number = 1
        return Message({"process": os.getpid()}, {"square": self.factor * float(number) ** 2})


class Sleeps(Work):
    """A shard that takes forever, and says who computes it."""

    def __init__(self, given: Message): ...

    def shard(self, shard: Message) -> Message:
        Path(shard.note["file"]).write_text(str(os.getpid()))
        time.sleep(3600)
        return Message()


_ONE = threading.Lock()
"""Lock of whoever computes: threads, unlike processes, must not build worlds at the same time."""


class ThreadWorker(Worker):
    """A worker that is a thread. fate: called with the number of each shard before it is computed; may wait, or raise LostError."""

    def __init__(self, fate: Callable[[int], None] = lambda number: None):
        self.desk, self.thread, self.fate = Desk(), ThreadPoolExecutor(1), fate

    def start(self, given: bytes) -> Future[bytes]:
        return self.thread.submit(self._start, given)

    def _start(self, given: bytes) -> bytes:
        self.fate(-1)
        with _ONE:
            return self.desk.start(given)

    def shard(self, number: int, shared: bytes | None, shard: bytes) -> Future[bytes]:
        return self.thread.submit(self._shard, number, shared, shard)

    def _shard(self, number: int, shared: bytes | None, shard: bytes) -> bytes:
        self.fate(Message.unpacked(shard).note.get("number", 0))
        with _ONE:
            return self.desk.shard(number, shared, shard)

    def close(self) -> None:
        self.thread.shutdown(wait=False)


def lost(number: int) -> None:
    """Be lost, as a worker whose process was killed."""
    raise LostError(f"was unplugged at {number}")
