"""Running compiled code, in this thread or over several."""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

from costate.kernel.calls.long_call import LongCall
from costate.kernel.calls.team import Team
from costate.kernel.calls.threads import workers
from costate.kernel.codegen.emit import WORDS_BEFORE, WORDS_PER_TENSOR
from costate.kernel.codegen.rows import GROUP
from costate.kernel.machine.artifact import Artifact

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # takes an address, or a bytes object as it is
_local = threading.local()
THREAD_GAIN_OPS = 16_000_000
"""Operations x samples below which a second thread costs more than it brings."""
TEAM_GAIN_OPS = 4_000_000
"""Operations of one sample below which threads that share it cost more than they bring."""
BRIEF = 0.02
"""Seconds that nobody notices who interrupts a call: a longer one must be interruptible."""
SECONDS_PER_OP = 2e-10
"""Estimate for code that was not yet called, on the safe side."""
SAFETY = 4
"""Factor by which a call may take longer than the ones before: loops end when they have converged."""
HEAD = 64
"""Bytes before the workspace of a kernel over fields."""
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
        self.helper = library.address("helper") if artifact.helper_workspace else 0  # type: ignore[attr-defined]
        self.seconds_per_op = SECONDS_PER_OP  # from then on as measured: few loops take as long as they may
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
        begun = time.perf_counter()
        ops = self.ops(batch, words[0])
        if threads == 1 and self.expects_brief(ops):
            self.run_here(words, batch)
        else:
            self._run_long(words, batch, threads, holds)
        self.took(threads * (time.perf_counter() - begun), ops)

    def expects_brief(self, ops: int) -> bool:
        """Return whether one thread is done soon, by what such calls took so far. ops: operations at most."""
        return ops * self.seconds_per_op < BRIEF

    def took(self, seconds: float, ops: int) -> None:
        """Remember how long a call took that one thread would have done in so many seconds."""
        self.seconds_per_op = max(SAFETY * seconds / ops, self.seconds_per_op / 2)

    def _run_long(self, words: Sequence[int], batch: int, threads: int, holds: object) -> None:
        """Compute all samples in worker threads."""
        if self.helper:
            self._run_team(words, batch, threads, holds)
            return
        groups = -(-batch // GROUP)
        parts = min(groups, 4 * threads)
        edges = [GROUP * (groups * k // parts) for k in range(parts)] + [batch]

        def compute(begin: int, end: int, stop: int) -> None:
            self._range(begin, end, stop, words)

        workers().run(LongCall(compute, pairwise(edges), holds), min(threads, parts))

    def _run_team(self, words: Sequence[int], batch: int, threads: int, holds: object) -> None:
        """Compute samples one after the other, each shared by several threads."""
        team = Team(self.helper)

        def compute(begin: int, end: int, stop: int) -> None:
            if begin < 0:
                team.help(self._room(self.artifact.helper_workspace, 0))
            else:
                team.lead(lambda: self._range(begin, end, stop, words, team.address if threads > 1 else 0))

        parts = [(0, batch), *[(-1, -1)] * (threads - 1)]
        workers().run(LongCall(compute, parts, (holds, team)), threads)

    def run_here(self, words: Sequence[int], batch: int) -> None:
        """Compute all samples in this thread: for work that `is_quick`."""
        self._range(0, batch, NEVER, words)

    def threads_for(self, batch: int, length: int = 0) -> int:
        """Return how many threads share a batch."""
        if self.helper:
            work = self.artifact.work + length * self.artifact.step_work
            return 1 if work < TEAM_GAIN_OPS else torch.get_num_threads()
        return 1 if self.is_small(batch, length) else torch.get_num_threads()

    def is_small(self, batch: int, length: int = 0) -> bool:
        """Return whether more threads would not help."""
        work = self.artifact.work + length * self.artifact.step_work
        return batch <= GROUP or work * batch < THREAD_GAIN_OPS

    def is_brief(self, batch: int, length: int = 0) -> bool:
        """Return whether one thread is done before somebody who interrupts it would notice, even if every loop takes as long as it
        may."""
        return self.ops(batch, length) * SECONDS_PER_OP < BRIEF

    def ops(self, batch: int, length: int) -> int:
        """Return how many operations a call takes at most."""
        return (self.artifact.work + length * self.artifact.step_work) * max(batch, LANES)

    def is_quick(self, batch: int, length: int = 0) -> bool:
        """Return whether the calling thread should compute all by itself."""
        return self.is_small(batch, length) and self.is_brief(batch, length)

    def room(self) -> tuple[int, int, object]:
        """Return size, address and memory of this thread's workspace, large enough for the code."""
        return workspace(self.workspace_bytes + HEAD)

    def _range(self, begin: int, end: int, stop: int, words: Sequence[int], team: int = 0) -> None:
        room = self.room()  # this name holds it, even when the end of the process takes what threads own
        start = room[1]
        if self.helper:
            start = _headed(start, team)
        self.entry(self.format.pack(begin, end, start, stop, *words))

    def _room(self, size: int, team: int) -> int:
        """Return the address of a workspace of this thread, behind the address of a team."""
        return _headed(workspace(size + HEAD)[1], team)


def _headed(start: int, team: int) -> int:
    """Write the address of a team before a workspace; return where the workspace begins."""
    ctypes.c_int64.from_address(start + HEAD - 8).value = team
    return start + HEAD


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
