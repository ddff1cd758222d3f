"""Calling compiled code: from tensors to the words the entry function reads, and over threads."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from costate.kernel.codegen.driver import ONE_LEVEL
from costate.kernel.codegen.emit import WORDS_BEFORE, WORDS_PER_TENSOR
from costate.kernel.codegen.runtime_ir import GROUP
from costate.kernel.compile import Artifact
from costate.kernel.signature import DTYPE_NAMES, Signature, Spec

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_char_p)  # takes a bytes object as it is
_local = threading.local()
THREAD_GAIN_OPS = 16_000_000
"""Operations x samples below which a second thread costs more than it brings."""

Words = tuple[int, int, int, int, int, int]


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
        """The same in this thread, for what `is_small`."""
        self.entry(self.format.pack(0, batch, workspace(self.workspace_bytes), *words))

    def threads_for(self, batch: int, length: int = 0) -> int:
        return 1 if self.is_small(batch, length) else torch.get_num_threads()

    def is_small(self, batch: int, length: int = 0) -> bool:
        """Whether more threads would not help."""
        work = self.artifact.work + length * self.artifact.step_work
        return batch <= GROUP or work * batch < THREAD_GAIN_OPS

    def _range(self, begin: int, end: int, words: Sequence[int]) -> None:
        packed = self.format.pack(begin, end, workspace(self.workspace_bytes), *words)
        self.entry(packed)


def workspace(size: int) -> int:
    """Address of this thread's workspace, at least `size` bytes, aligned to 64. Kernels take turns, so one serves all."""
    have = getattr(_local, "size", -1)
    if have < size:
        _local.buffer = np.empty(size + 64, np.uint8)
        start = _local.buffer.ctypes.data
        _local.address = start + (-start) % 64
        _local.size = size
    return _local.address


_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads of this process; a forked child starts its own."""
    key = os.getpid(), threads
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(threads, thread_name_prefix="costate")
    return _pools[key]


def describe(
    t: torch.Tensor, batch: torch.Size | tuple[int, ...], event: int, mode: int = 0
) -> tuple[Words, torch.Tensor]:
    """Descriptor of a tensor seen with leading dimensions `batch`, and the tensor it describes (copied only if its strides
    cannot be expressed)."""
    size = t.element_size()
    if t.is_neg():  # torch negates lazily; the memory holds the other sign
        t = t.resolve_neg()
    if not _rows_ok(t.shape, t.stride()):
        t = _compact(t, event)
    if tuple(t.shape[: t.dim() - event]) != tuple(batch):
        t = t.expand(*batch, *t.shape[t.dim() - event :])
    strides = t.stride()
    levels = _levels(batch, strides)
    if levels is None:
        t = t.contiguous()
        strides = t.stride()
        levels = _levels(batch, strides)
        assert levels is not None
    inner, outer, step = levels
    row = strides[-2] if event == 2 else 0
    return (t.data_ptr(), inner, outer * size, step * size, row * size, mode), t


def _rows_ok(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return shape[-1] <= 1 or strides[-1] == 1


def _compact(t: torch.Tensor, event: int) -> torch.Tensor:
    """A copy with contiguous rows. What is shared along the batch is copied once and stays shared."""
    lead = t.dim() - event
    once = t[tuple(slice(0, 1) if s == 0 else slice(None) for s in t.stride()[:lead])]
    return once.contiguous().expand(t.shape)


def _levels(batch: Sequence[int], strides: Sequence[int]) -> tuple[int, int, int] | None:
    """(inner, outer stride, inner stride) that reach every sample, or None."""
    merged: list[tuple[int, int]] = []
    for n, s in zip(batch, strides, strict=False):
        if n == 1:
            continue
        if merged and merged[-1][1] == s * n:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    if not merged:
        return ONE_LEVEL, 0, 0
    if len(merged) == 1:
        return ONE_LEVEL, 0, merged[0][1]
    if len(merged) == 2:
        return merged[1][0], merged[0][1], merged[1][1]
    return None


def sum_groups(partial: np.ndarray) -> np.ndarray:
    """Sum over the first axis, in order."""
    return np.add.reduce(partial, axis=0)


def sum_to(full: torch.Tensor, batch: Sequence[int], event: int) -> torch.Tensor:
    """Sum leading dimensions down to `batch` (as broadcasting would have expanded them), in a fixed order."""
    lead = full.dim() - event
    target = (1,) * (lead - len(batch)) + tuple(batch)
    axes = [k for k in range(lead) if target[k] == 1 and full.shape[k] != 1]
    rest = [k for k in range(full.dim()) if k not in axes]
    moved = full.permute(*axes, *rest).contiguous()
    rows = int(np.prod([full.shape[k] for k in axes])) if axes else 1
    if not rows:
        return torch.zeros(*batch, *full.shape[lead:], dtype=full.dtype)
    total = np.add.reduce(moved.reshape(rows, -1).numpy(), axis=0) if moved.numel() else moved.numpy()
    return torch.from_numpy(np.atleast_1d(total)).reshape(*batch, *full.shape[lead:])


class QuickCall:
    """The short way for the plain case: contiguous tensors, each shared or with the same batch; outputs for every sample, or
    summed over all of them.

    What depends on shapes alone is remembered from the last call.
    """

    def __init__(self, signature: Signature, code: Callable[[str], NativeCode], length: int):
        self.length = length
        self.inputs = [_event(s) for s in signature.inputs]
        self.outputs = [_event(s) for s in signature.outputs]
        self.code = code
        self.plan: _Plan | None = None

    def run(self, tensors: Sequence[torch.Tensor], batches: Sequence | None = None) -> list[torch.Tensor] | None:
        """The outputs, or None if the case is not plain. batches: see torch_op."""
        plan = self.plan
        if plan is None or plan.batches != batches or not _fits(plan, tensors):
            plan = self.plan = self._make_plan(tensors, batches)
            if plan is None or not _fits(plan, tensors):
                return None
        words = plan.words.copy()
        at = 1
        for t in tensors:
            words[at] = t.data_ptr()
            at += WORDS_PER_TENSOR
        if plan.totals is not None:
            return plan.totals.run(plan, words, at)
        outs = []
        for template in plan.templates:
            o = torch.empty_like(template, memory_format=torch.contiguous_format)
            words[at] = o.data_ptr()
            at += WORDS_PER_TENSOR
            outs.append(o)
        if plan.single:
            plan.code.run_here(words, plan.size)
        elif plan.size:
            plan.code.run(words, plan.size)
        return outs

    def _make_plan(self, tensors: Sequence[torch.Tensor], batches: Sequence | None) -> _Plan | None:
        if not tensors or not all(isinstance(t, torch.Tensor) for t in tensors) or tensors[0].dtype not in _BYTES:
            return None
        dtype = tensors[0].dtype
        width = _BYTES[dtype]
        leads = [t.shape[: max(len(t.shape) - nd, 0)] for t, (_, nd, _, _) in zip(tensors, self.inputs, strict=True)]
        batch = max(leads, key=lambda lead: (len(lead), lead.numel()))
        words: list[int] = [self.length]
        for t, lead, (shape, _, size, row) in zip(tensors, leads, self.inputs, strict=True):
            if (t.shape[len(lead) :] or _ONE) != shape or (lead != batch and lead.numel() != 1):
                return None
            words += (0, ONE_LEVEL, 0, size * width if lead == batch else 0, row * width, 0)
        totals = None
        if batches is not None and any(b is not None and b != batch for b in batches):
            totals = _Totals.of(self.outputs, batches, batch.numel())
            if totals is None:
                return None
            words += totals.words(width)
        else:
            for _, _, size, row in self.outputs:
                words += (0, ONE_LEVEL, 0, size * width, row * width, 0)
        templates = [torch.empty((), dtype=dtype).expand(batch + shape) for shape, _, _, _ in self.outputs]
        code = self.code(DTYPE_NAMES[dtype])
        shapes = [t.shape for t in tensors]
        n = batch.numel()
        single = n > 0 and code.is_small(n, self.length)
        return _Plan(dtype, shapes, batches, n, templates, totals, words, code, single)


class _Totals(NamedTuple):
    """Outputs that are all summed over the batch: one row of partial sums of all of them per group of samples."""

    groups: int
    size: int
    """Numbers per row."""
    views: list[tuple[tuple[int, ...], tuple[int, ...], int]]
    """Shape, strides and place in a row of every output."""
    rows: list[int]
    """Numbers per row of every output that is a matrix."""

    @staticmethod
    def of(outputs: Sequence[_Event], batches: Sequence, n: int) -> _Totals | None:
        groups = -(-n // GROUP)
        # From 8 terms on NumPy adds in another order when there is one column only.
        if groups >= 8 or not n or any(b is None or any(d != 1 for d in b) for b in batches):
            return None
        views, at = [], 0
        for b, (shape, nd, size, row) in zip(batches, outputs, strict=True):
            views.append(((*b, *shape), (size,) * len(b) + ((row, 1) if nd == 2 else (1,)), at))
            at += size
        return _Totals(groups, at, views, [row for _, _, _, row in outputs])

    def words(self, width: int) -> list[int]:
        found = []
        for row in self.rows:
            found += (0, ONE_LEVEL, 0, self.size * width, row * width, 1)
        return found

    def run(self, plan: _Plan, words: list[int], at: int) -> list[torch.Tensor]:
        partial = torch.zeros(self.groups, self.size, dtype=plan.dtype)
        start, width = partial.data_ptr(), _BYTES[plan.dtype]
        for _, _, offset in self.views:
            words[at] = start + offset * width
            at += WORDS_PER_TENSOR
        (plan.code.run_here if plan.single else plan.code.run)(words, plan.size)
        total = partial if self.groups == 1 else torch.from_numpy(sum_groups(partial.numpy()))
        return [total.as_strided(*view) for view in self.views]


class _Plan(NamedTuple):
    dtype: torch.dtype
    shapes: list[torch.Size]
    batches: Sequence | None
    """To what the outputs are summed."""
    size: int
    """Samples."""
    templates: list[torch.Tensor]
    """Outputs without memory: their shapes and types."""
    totals: _Totals | None
    words: list[int]
    code: NativeCode
    single: bool
    """Whether one thread computes them; false if there are none."""


def _fits(plan: _Plan, tensors: Sequence[torch.Tensor]) -> bool:
    dtype = plan.dtype
    try:
        for t, shape in zip(tensors, plan.shapes, strict=True):
            if t.shape != shape or t.dtype is not dtype or not t.is_contiguous() or not t.is_cpu or t.is_neg():
                return False
    except AttributeError:  # not a tensor: the long way says so
        return False
    return True


_ONE = torch.Size([1])  # what a number () stands for
_BYTES = {torch.float64: 8, torch.float32: 4}


_Event = tuple[torch.Size, int, int, int]


def _event(spec: Spec) -> _Event:
    """Shape without batch, its dimensions, elements, and elements per row."""
    return torch.Size(spec.shape), len(spec.shape), spec.size, spec.rows[1] if len(spec.shape) == 2 else 0
