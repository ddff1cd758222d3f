"""Running compiled code, in this thread or over several."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch

from costate.kernel.codegen.emit import WORDS_BEFORE, WORDS_PER_TENSOR
from costate.kernel.codegen.rows import GROUP
from costate.kernel.machine.artifact import Artifact

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_char_p)  # takes a bytes object as it is
_local = threading.local()
THREAD_GAIN_OPS = 16_000_000
"""Operations x samples below which a second thread costs more than it brings."""


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

    def run(self, words: Sequence[int], batch: int) -> None:
        """Compute samples 0 .. batch - 1. `words`: the length of sequences, then the descriptors of all tensors, flat."""
        threads = self.threads_for(batch, words[0])
        if threads == 1:
            self._range(0, batch, words)
            return
        groups = -(-batch // GROUP)
        parts = min(groups, 4 * threads)
        edges = [GROUP * (groups * k // parts) for k in range(parts)] + [batch]
        jobs = [_pool(threads).submit(self._range, a, b, words) for a, b in pairwise(edges)]
        for job in jobs:
            job.result()

    def run_here(self, words: Sequence[int], batch: int) -> None:
        """Compute all samples in this thread: for work that `is_small`."""
        self.entry(self.format.pack(0, batch, workspace(self.workspace_bytes), *words))

    def threads_for(self, batch: int, length: int = 0) -> int:
        """Return how many threads share a batch."""
        return 1 if self.is_small(batch, length) else torch.get_num_threads()

    def is_small(self, batch: int, length: int = 0) -> bool:
        """Return whether more threads would not help."""
        work = self.artifact.work + length * self.artifact.step_work
        return batch <= GROUP or work * batch < THREAD_GAIN_OPS

    def _range(self, begin: int, end: int, words: Sequence[int]) -> None:
        packed = self.format.pack(begin, end, workspace(self.workspace_bytes), *words)
        self.entry(packed)


def workspace(size: int) -> int:
    """Return the address of this thread's workspace: at least `size` bytes, aligned to 64. Kernels take turns, so one will do."""
    have = getattr(_local, "size", -1)
    if have < size:
        _local.buffer = np.empty(size + 64, np.uint8)
        start = _local.buffer.ctypes.data
        _local.address = start + (-start) % 64
        _local.size = size
    return _local.address


_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def _pool(threads: int) -> ThreadPoolExecutor:
    """Return the threads of this process; a forked child starts its own."""
    key = os.getpid(), threads
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(threads, thread_name_prefix="costate")
    return _pools[key]
