"""Calls without torch: NumPy arrays, and arrays bound once for a control loop."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from costate.kernel.calls.descriptors import describe
from costate.kernel.calls.native import NEVER
from costate.kernel.signature import DTYPE_NAMES

if TYPE_CHECKING:
    from costate.kernel.kernel import Kernel

_Entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Bound:
    """A kernel on fixed arrays. Calling it computes `outputs` from what the inputs hold now. Not for several threads at once."""

    def __init__(self, kernel: Kernel, arrays: Sequence[np.ndarray]):
        tensors = [_shared(kernel, s.name, a) for s, a in zip(kernel.signature.inputs, arrays, strict=True)]
        dtype = kernel.signature.check(tensors)
        batch = kernel.signature.batch(tensors)
        code = kernel.code(DTYPE_NAMES[dtype])
        results = [torch.empty(*batch, *s.shape, dtype=dtype) for s in kernel.signature.outputs]
        specs = (*kernel.signature.inputs, *kernel.signature.outputs)
        words: list[int] = [kernel.length]
        addresses = [*(a.ctypes.data for a in arrays), *(r.data_ptr() for r in results)]
        for t, s, address in zip([*tensors, *results], specs, addresses, strict=True):
            described, held = describe(t, batch, len(s.shape))
            if held.data_ptr() != address:  # a copy would not see what the array holds later
                raise ValueError(
                    f"kernel '{kernel.name}': bind needs input '{s.name}' C-contiguous and writeable; pass a copy of it, "
                    f"np.array(...)"
                )
            words += described
        self.inputs = tuple(arrays)
        self.outputs: Any = kernel._result(*(r.numpy() for r in results))
        self._keep = results, code
        self._workspace = np.empty(code.workspace_bytes + 64, np.uint8)
        start = self._workspace.ctypes.data
        packed = code.format.pack(0, batch.numel(), start + -start % 64, NEVER, *words)
        self._words = np.frombuffer(bytearray(packed), np.int64)
        self._address = self._words.ctypes.data
        self._entry: Callable[[int], None] = _Entry(code.address)
        if not code.is_brief(batch.numel(), kernel.length):
            holds = self.inputs, results
            self._entry = lambda _: code.run(words, batch.numel(), holds)

    def __call__(self) -> None:
        self._entry(self._address)


class NumpyCall:
    """NumPy in, NumPy out. Single samples go through buffers with known addresses, one set per thread and number type."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.shapes = [s.shape for s in kernel.signature.inputs]
        self.local = threading.local()

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            bound, shapes, dtype = self.local.ready
            for buffer, shape, a in zip(bound.inputs, shapes, arrays, strict=True):
                if a.shape != shape or (a.dtype is not dtype and a.dtype != dtype):
                    return self._general(arrays)
                buffer[...] = a
        except AttributeError:
            return self._general(arrays)
        bound()
        return [o.copy() for o in bound.outputs]

    def _general(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        signature = self.kernel.signature
        arrays = [np.asarray(a) for a in arrays]
        if [a.shape for a in arrays] == self.shapes and arrays:
            tensors = [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]
            signature.check(tensors)
            buffers = [np.zeros(s, a.dtype) for s, a in zip(self.shapes, arrays, strict=True)]
            self.local.ready = Bound(self.kernel, buffers), self.shapes, arrays[0].dtype
            return self(arrays)
        tensors = [_shared(self.kernel, s.name, a) for s, a in zip(signature.inputs, arrays, strict=True)]
        return [o.numpy() for o in self.kernel.run(tensors)]


def _shared(kernel: Kernel, name: str, array: np.ndarray) -> torch.Tensor:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"kernel '{kernel.name}': input '{name}' is a {type(array).__name__}; expected a NumPy array")
    if array.dtype not in (np.float64, np.float32):
        raise TypeError(
            f"kernel '{kernel.name}': input '{name}' is {array.dtype}; expected float64 or float32: use .astype(float)"
        )
    if not array.flags.writeable:
        array = array.copy()
    return torch.from_numpy(array)
