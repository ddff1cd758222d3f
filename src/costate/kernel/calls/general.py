"""The long way from tensors to compiled code: everything that broadcasts, is checked, strided, or summed in part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from costate.kernel.calls.descriptors import describe, sum_groups, sum_to
from costate.kernel.calls.native import NativeCode
from costate.kernel.calls.pages import on_large_pages
from costate.kernel.codegen.driver import ONE_LEVEL
from costate.kernel.codegen.rows import GROUP
from costate.kernel.signature import DTYPE_NAMES, Signature, Spec

Batch = Sequence[int]
"""Leading dimensions."""


class GeneralCall:
    """Calls with any tensors that fit a signature."""

    def __init__(self, signature: Signature, code: Callable[[str], NativeCode], length: int):
        self.signature, self.code, self.length = signature, code, length

    def run(self, tensors: Sequence[torch.Tensor], batches: Sequence[Batch | None] | None) -> list[torch.Tensor]:
        """Return the outputs. batches: for every output the leading dimensions it is summed to, None for those of the call."""
        tensors = self.signature.with_numbers(tensors)
        dtype = self.signature.check(tensors) if tensors else torch.get_default_dtype()
        code = self.code(DTYPE_NAMES[dtype])
        batch = self.signature.batch(tensors)
        words: list[int] = [self.length]
        alive = []
        for spec, t in zip(self.signature.inputs, tensors, strict=True):
            described, held = describe(t, batch, len(spec.shape))
            words += described
            alive.append(held)
        targets = batches or [None] * len(self.signature.outputs)
        outputs = [_output(s, batch, b, dtype) for s, b in zip(self.signature.outputs, targets, strict=True)]
        for described, _ in outputs:
            words += described
        if batch.numel():
            code.run(words, batch.numel(), (alive, outputs))
        return [result() for _, result in outputs]


def _output(
    spec: Spec, batch: torch.Size, target: Batch | None, dtype: torch.dtype
) -> tuple[Sequence[int], Callable[[], torch.Tensor]]:
    """Return the descriptor of the memory that the code writes an output to, and what makes the output of it afterwards."""
    event = len(spec.shape)
    if target is not None and tuple(target) != tuple(batch) and all(d == 1 for d in target):
        partial = torch.zeros(-(-batch.numel() // GROUP), *spec.shape, dtype=dtype)
        size = partial.element_size()
        row = partial.stride(1) * size if event == 2 else 0
        words = (partial.data_ptr(), ONE_LEVEL, 0, partial.stride(0) * size, row, 1)
        shape = (*target, *spec.shape)
        return words, lambda: torch.from_numpy(np.atleast_1d(sum_groups(partial.numpy()))).reshape(shape)
    full = on_large_pages(torch.empty(*batch, *spec.shape, dtype=dtype))
    words, _ = describe(full, batch, event)
    if target is None or tuple(target) == tuple(batch):
        return words, lambda: full
    return words, lambda: sum_to(full, target, event)
