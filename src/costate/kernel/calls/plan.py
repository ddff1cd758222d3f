"""Plans: everything about a call that depends on the shapes of its tensors alone, worked out once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from costate.kernel.calls.descriptors import sum_groups
from costate.kernel.calls.native import NEVER, NativeCode
from costate.kernel.calls.pages import on_large_pages
from costate.kernel.codegen.driver import ONE_LEVEL
from costate.kernel.codegen.emit import WORDS_BEFORE, WORDS_PER_TENSOR
from costate.kernel.codegen.rows import GROUP
from costate.kernel.signature import Spec

try:  # one call of C++ in place of six of Python per tensor
    from torch._C._dynamo.guards import TensorGuards
except ImportError:  # pragma: no cover  (another torch: slower, with the same results)
    TensorGuards = None

BYTES = {torch.float64: 8, torch.float32: 4}
"""Number types of kernels, and the bytes of a number."""
Event = tuple[torch.Size, int, int, int]
"""Shape without batch, its dimensions, elements, and elements per row."""
_WORKSPACE_WORD = 2
OWN_WORKSPACE = 2**18
"""Bytes of workspace up to which a plan brings its own, which saves asking for that of the thread."""


def event(spec: Spec) -> Event:
    return torch.Size(spec.shape), len(spec.shape), spec.size, spec.rows[1] if len(spec.shape) == 2 else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """A call with contiguous tensors of known shapes, each shared or with the same batch."""

    same: Callable[..., bool]
    """Returns quickly whether tensors are like those of the plan, requests for gradients included; false tells nothing."""
    recorded: bool
    """True if some of these tensors ask for gradients."""
    dtype: torch.dtype
    shapes: list[torch.Size]
    batches: Sequence | None
    """Leading dimensions that the outputs are summed to."""
    size: int
    """Samples."""
    templates: list[Tensor]
    """Tensors like the outputs; those of large batches have no memory of their own."""
    totals: Totals | None
    words: list[int]
    """Arguments of the code, still without the addresses of tensors."""
    free: list[tuple[memoryview, int, object]]
    """Copies of the arguments that no call is using, and their addresses."""
    code: NativeCode
    single: bool
    """True if the calling thread computes all samples; false if there are none."""
    alone: int | None
    """Operations at most, where one thread is enough and the code does not need a team."""
    simple: bool
    """True if besides the workspace is small: every set of arguments has its own."""
    small: bool
    """True if templates have memory of their own."""
    pulls: dict[Any, Any] = field(default_factory=dict)
    """Kernels of backward passes by the gradients that were asked for (`torch_op`)."""

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the outputs."""
        try:
            arguments = self.free.pop()
        except IndexError:  # none yet, or all of them in use
            arguments = self._arguments()
        words = arguments[0]
        at = WORDS_BEFORE
        for t in tensors:
            words[at] = t.data_ptr()
            at += WORDS_PER_TENSOR
        if self.totals is not None:
            return self.totals.run(self, arguments, at, tensors)
        outs, small, empty_like = [], self.small, torch.empty_like
        for template in self.templates:
            o = empty_like(template) if small else _fresh(template)
            words[at] = o.data_ptr()
            at += WORDS_PER_TENSOR
            outs.append(o)
        if self.simple:
            self.code.entry(arguments[1])
            self.free.append(arguments)
        else:
            self.compute(arguments, (tensors, outs))
        return outs

    def compute(self, arguments: tuple[memoryview, int, object], holds: object) -> None:
        """Run the code. `holds`: what keeps its tensors alive."""
        words, address, _ = arguments
        if self.simple:
            self.code.entry(address)
        elif self.single and self.alone is not None:
            self._alone(words, address)
        elif self.single:
            self.code.run_here(words[WORDS_BEFORE - 1 :].tolist(), self.size)
        elif self.alone is not None and self.code.expects_brief(self.alone):
            begun = time.perf_counter()
            self._alone(words, address)
            self.code.took(time.perf_counter() - begun, self.alone)
        elif self.size:
            self.code.run(words[WORDS_BEFORE - 1 :].tolist(), self.size, holds)
        self.free.append(arguments)

    def _alone(self, words: memoryview, address: int) -> None:
        """Run the code in this thread, with its workspace."""
        room = self.code.room()
        words[_WORKSPACE_WORD] = room[1]
        self.code.entry(address)

    def _arguments(self) -> tuple[memoryview, int, object]:
        words = np.array(self.words, np.int64)
        room = np.empty(self.code.workspace_bytes + 64 if self.simple else 0, np.uint8)
        start = room.ctypes.data
        words[_WORKSPACE_WORD] = start + -start % 64
        return words.data, words.ctypes.data, room

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether tensors can be computed by this plan."""
        dtype = self.dtype
        try:
            for t, shape in zip(tensors, self.shapes, strict=True):
                if t.shape != shape or t.dtype is not dtype or not t.is_contiguous() or not t.is_cpu or t.is_neg():
                    return False
        except AttributeError:  # not a tensor: the long way says so
            return False
        return True


def words_of(length: int, size: int) -> list[int]:
    """Return the words before the tensors: all samples, no workspace yet, nobody who stops the code."""
    return [0, size, 0, NEVER, length]


def guard(tensors: Sequence[Tensor]) -> Callable[..., bool]:
    """Return a function that says whether other tensors have the types, shapes, strides and dispatch keys of these (transforms and
    lazy negation are among them), and ask for gradients alike."""
    if TensorGuards is None or any(type(t) not in (Tensor, nn.Parameter) for t in tensors):
        return _never
    return TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


def template(shape: torch.Size, dtype: torch.dtype, size: int) -> Tensor:
    """Return a tensor like an output of `size` samples; one without memory if they are many."""
    return torch.empty(shape, dtype=dtype) if size <= GROUP else torch.empty((), dtype=dtype).expand(shape)


def _fresh(template: Tensor) -> Tensor:
    return on_large_pages(torch.empty_like(template, memory_format=torch.contiguous_format))


def _never(*_: Tensor) -> bool:
    return False


class Totals(NamedTuple):
    """Outputs that are all summed over the batch: one row of partial sums of all of them per group of samples."""

    groups: int
    size: int
    """Numbers per row."""
    views: list[tuple[tuple[int, ...], tuple[int, ...], int]]
    """Shape, strides and place in a row of every output."""
    rows: list[int]
    """Numbers per row of every output that is a matrix."""

    @staticmethod
    def of(outputs: Sequence[Event], batches: Sequence, n: int) -> Totals | None:
        """Plan the sums, or return None if some output is not summed over the whole batch."""
        groups = -(-n // GROUP)
        # From 8 terms on NumPy adds in another order when there is one column only.
        if groups >= 8 or not n or any(b is None or any(d != 1 for d in b) for b in batches):
            return None
        views, at = [], 0
        for b, (shape, nd, size, row) in zip(batches, outputs, strict=True):
            views.append(((*b, *shape), (size,) * len(b) + ((row, 1) if nd == 2 else (1,)), at))
            at += size
        return Totals(groups, at, views, [row for _, _, _, row in outputs])

    def words(self, width: int) -> list[int]:
        """Return the descriptors of all outputs, still without addresses."""
        found = []
        for row in self.rows:
            found += (0, ONE_LEVEL, 0, self.size * width, row * width, 1)
        return found

    def run(
        self, plan: Plan, arguments: tuple[memoryview, int, object], at: int, tensors: Sequence[Tensor]
    ) -> list[Tensor]:
        """Compute partial sums, and their total."""
        partial = torch.zeros(self.groups, self.size, dtype=plan.dtype)
        start, width = partial.data_ptr(), BYTES[plan.dtype]
        for _, _, offset in self.views:
            arguments[0][at] = start + offset * width
            at += WORDS_PER_TENSOR
        plan.compute(arguments, (tensors, partial))
        total = partial if self.groups == 1 else torch.from_numpy(sum_groups(partial.numpy()))
        return [total.as_strided(*view) for view in self.views]
