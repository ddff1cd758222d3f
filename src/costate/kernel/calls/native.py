"""Running compiled code, in this thread or over several."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

from costate.kernel.calls.long_call import LongCall
from costate.kernel.calls.threads import workers
from costate.kernel.codegen.emit import WORDS_BEFORE, WORDS_PER_TENSOR
from costate.kernel.codegen.rows import GROUP
from costate.kernel.machine.artifact import Artifact

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_char_p)  # takes a bytes object as it is
_local = threading.local()
THREAD_GAIN_OPS = 16_000_000
"""Operations x samples below which a second thread costs more than it brings."""
BRIEF_OPS = 100_000_000
"""Operations x samples that take hundredths of a second: a call of more must be interruptible."""
LANES = 8
"""Samples that take as long as one."""
NEVER = ctypes.addressof(_never := ctypes.c_int64(0))
"""Address of the stop flag of calls that nobody stops."""


class NativeCode:
    """Linked machine code of one kernel and number type. The library that holds it is kept alive."""

    def __init__(self, address: int, n_tensors: int, workspace_bytes: int, artifact: Artifact, library: object):
        self.address = address
        self.entry = _Entry(address)
        self.workspace_bytes = workspace_bytes
        self.artifact = artifact
        self.library = library
        self.format = struct.Struct(f"={WORDS_BEFORE + WORDS_PER_TENSOR * n_tensors}q")

    @property
    def n_ops(self) -> int:
        """Number of operations in the code; a loop body counts once."""
        return self.artifact.n_ops

    def run(self, words: Sequence[int], batch: int, holds: object) -> None:
        """Compute samples 0 .. batch - 1. `words`: the length of sequences, then the descriptors of all tensors. `holds`: what
        keeps their memory alive."""
        threads = self.threads_for(batch, words[0])
        if threads == 1 and self.is_brief(batch, words[0]):
            self.run_here(words, batch)
            return
        groups = -(-batch // GROUP)
        parts = min(groups, 4 * threads)
        edges = [GROUP * (groups * k // parts) for k in range(parts)] + [batch]

        def compute(begin: int, end: int, stop: int) -> None:
            self._range(begin, end, stop, words)

        workers().run(LongCall(compute, pairwise(edges), holds), min(threads, parts))

    def run_here(self, words: Sequence[int], batch: int) -> None:
        """Compute all samples in this thread: for work that `is_quick`."""
        self._range(0, batch, NEVER, words)

    def threads_for(self, batch: int, length: int = 0) -> int:
        """Return how many threads share a batch."""
        return 1 if self.is_small(batch, length) else torch.get_num_threads()

    def is_small(self, batch: int, length: int = 0) -> bool:
        """Return whether more threads would not help."""
        work = self.artifact.work + length * self.artifact.step_work
        return batch <= GROUP or work * batch < THREAD_GAIN_OPS

    def is_brief(self, batch: int, length: int = 0) -> bool:
        """Return whether one thread is done before somebody who interrupts it would notice."""
        work = self.artifact.work + length * self.artifact.step_work
        return work * max(batch, LANES) < BRIEF_OPS

    def is_quick(self, batch: int, length: int = 0) -> bool:
        """Return whether the calling thread should compute all by itself."""
        return self.is_small(batch, length) and self.is_brief(batch, length)

    def _range(self, begin: int, end: int, stop: int, words: Sequence[int]) -> None:
        room = workspace(
            self.workspace_bytes
        )  # this name holds it, even when the end of the process takes what threads own
        self.entry(self.format.pack(begin, end, room[1], stop, *words))


def workspace(size: int) -> tuple[int, int, object]:
    """Return the size, address and memory of this thread's workspace: at least `size` bytes, aligned to 64. Kernels take turns, so
    one will do."""
    room = getattr(_local, "room", _NO_ROOM)
    if room[0] < size:
        memory = np.empty(size + 64, np.uint8)
        start = memory.ctypes.data
        room = _local.room = size, start + (-start) % 64, memory
    return room


_NO_ROOM = (-1, 0, None)
