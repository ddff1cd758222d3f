"""The short way from tensors to compiled code, for the plain case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from costate.core.numbers import alike
from costate.kernel.calls.descriptors import sum_groups
from costate.kernel.calls.native import NativeCode
from costate.kernel.codegen.driver import ONE_LEVEL
from costate.kernel.codegen.emit import WORDS_PER_TENSOR
from costate.kernel.codegen.rows import GROUP
from costate.kernel.signature import DTYPE_NAMES, Signature, Spec


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
        """Return the outputs, or None if the case is not plain. batches: see torch_op."""
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
            return plan.totals.run(plan, words, at, tensors)
        outs = []
        for template in plan.templates:
            o = torch.empty_like(template, memory_format=torch.contiguous_format)
            words[at] = o.data_ptr()
            at += WORDS_PER_TENSOR
            outs.append(o)
        if plan.single:
            plan.code.run_here(words, plan.size)
        elif plan.size:
            plan.code.run(words, plan.size, (tensors, outs))
        return outs

    def _make_plan(self, tensors: Sequence[torch.Tensor], batches: Sequence | None) -> _Plan | None:
        if not tensors or not alike(tensors) or tensors[0].dtype not in _BYTES:
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
        single = n > 0 and code.is_quick(n, self.length)
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
        """Plan the sums, or return None if some output is not summed over the whole batch."""
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
        """Return the descriptors of all outputs, still without addresses."""
        found = []
        for row in self.rows:
            found += (0, ONE_LEVEL, 0, self.size * width, row * width, 1)
        return found

    def run(self, plan: _Plan, words: list[int], at: int, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Compute partial sums, and their total."""
        partial = torch.zeros(self.groups, self.size, dtype=plan.dtype)
        start, width = partial.data_ptr(), _BYTES[plan.dtype]
        for _, _, offset in self.views:
            words[at] = start + offset * width
            at += WORDS_PER_TENSOR
        if plan.single:
            plan.code.run_here(words, plan.size)
        else:
            plan.code.run(words, plan.size, (tensors, partial))
        total = partial if self.groups == 1 else torch.from_numpy(sum_groups(partial.numpy()))
        return [total.as_strided(*view) for view in self.views]


class _Plan(NamedTuple):
    dtype: torch.dtype
    shapes: list[torch.Size]
    batches: Sequence | None
    """Leading dimensions that the outputs are summed to."""
    size: int
    """Samples."""
    templates: list[torch.Tensor]
    """Outputs without memory: their shapes and types."""
    totals: _Totals | None
    words: list[int]
    code: NativeCode
    single: bool
    """True if the calling thread computes all samples; false if there are none."""


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
