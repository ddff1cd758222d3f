"""Calls without torch: NumPy arrays, and arrays bound once for a control loop."""

from __future__ import annotations

import ctypes
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from costate.core.eager import eager
from costate.kernel.calls.descriptors import describe
from costate.kernel.calls.native import NEVER
from costate.kernel.signature import DTYPE_NAMES
from costate.kernel.symbols import identifier

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
        self.kernel = kernel
        names = [identifier(s.name) for s in kernel.signature.inputs]
        self.inputs: Any = namedtuple("Inputs", names, rename=True)(*arrays)  # type: ignore[misc]
        self.outputs: Any = kernel._result(*(r.numpy() for r in results))
        self._keep = results, code
        self._workspace = np.empty(code.workspace_bytes + 64, np.uint8)
        start = self._workspace.ctypes.data
        packed = code.format.pack(0, batch.numel(), start + -start % 64, NEVER, *words)
        self._words = np.frombuffer(bytearray(packed), np.int64)
        self.address = self._words.ctypes.data
        self.entry: Callable[[int], None] = _Entry(code.address)
        if not code.is_brief(batch.numel(), kernel.length):
            holds = self.inputs, results
            self.entry = lambda _: code.run(words, batch.numel(), holds)

    def __call__(self) -> None:
        self.entry(self.address)

    def vjp(self, wrt: str | Sequence[str] | None = None, of: str | Sequence[str] | None = None) -> Bound:
        """Return the gradients on the same arrays: `inputs.<output>_bar` are new arrays for the seeds, at first zero, and
        `outputs.<input>_bar` the gradients.

        It computes with what the inputs hold when it is called, and with the outputs of this object's last call where these are
        cheaper than computing them again: call this object first.
        """
        kernel, s = self.kernel, self.kernel.signature
        seeded = s.positions(s.outputs, of, "output")
        back = kernel.derivative("vjp_given", s.positions(s.inputs, wrt, "input"), seeded)
        seeds = [np.zeros_like(self.outputs[k]) for k in seeded]
        return Bound(back, [*self.inputs, *[self.outputs[k] for k in kernel.given], *seeds])

    def jacobian(self, of: str, wrt: str) -> Bound:
        """Return the Jacobian on the same arrays: `outputs.jacobian` (..., n_of, n_wrt), of what the inputs hold at each call."""
        s = self.kernel.signature
        which = (s.index(s.inputs, wrt, "input"),), (s.index(s.outputs, of, "output"),)
        return Bound(self.kernel.derivative("jacobian", *which), self.inputs)


class NumpyCall:
    """NumPy in, NumPy out, without gradients.

    Single samples go through buffers with known addresses, a set of them for every call that runs at the same time. `function` is
    written for the names of the kernel, as `namedtuple` writes its own: arguments that Python sorts itself save a third of a call.
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.shapes = [s.shape for s in kernel.signature.inputs]
        self.free: list[tuple[Any, ...]] = []
        names = [s.name for s in kernel.signature.inputs]
        plain = names and all(n.isidentifier() and not iskeyword(n) and not n.startswith("_") for n in names)
        self.function: Callable[..., Any] = (
            eager(self._written(names)) if plain else lambda **given: self.general(given)
        )

    def _written(self, names: Sequence[str]) -> Any:
        """Return the function of single samples with these names; all others are passed on."""
        outputs = [f"_o{k}" for k in range(len(self.kernel.signature.outputs))]
        buffers = [f"_b{k}" for k in range(len(names))]
        unlike = " or ".join(f"{n}.shape != _s{k} or {n}.dtype is not _kind" for k, n in enumerate(names))
        source = _SOURCE.format(
            parameters=", ".join(f"{n}=None" for n in names),
            shapes=", ".join(f"_s{k}" for k in range(len(names))),
            ready=", ".join([*buffers, *outputs]),
            unlike=unlike,
            copies="; ".join(f"{b}[...] = {n}" for b, n in zip(buffers, names, strict=True)),
            given=", ".join(f"{n!r}: {n}" for n in names),
            results="".join(f"{o}.copy(), " for o in outputs),
        )
        scope: dict[str, Any] = {}
        exec(source, scope)  # names are identifiers: checked
        return scope["_make"](self.free, self.general, self.kernel._result, self.shapes)

    def general(self, given: Mapping[str, np.ndarray]) -> Any:
        """Return the named outputs of any inputs, and make buffers if they are a single sample."""
        kernel, signature = self.kernel, self.kernel.signature
        arrays = [np.asarray(a) for a in signature.pick({name: a for name, a in given.items() if a is not None})]
        tensors = [_shared(kernel, s.name, a) for s, a in zip(signature.inputs, arrays, strict=True)]
        if [a.shape for a in arrays] == self.shapes and arrays:
            signature.check(tensors)
            self._make_ready([a.copy() for a in arrays])
        return kernel._result(*(o.numpy() for o in kernel.run(tensors)))

    def _make_ready(self, buffers: Sequence[np.ndarray]) -> None:
        """Add a set of buffers, unless there is one for this number type."""
        kind = buffers[0].dtype
        if self.free and self.free[-1][0] == kind:
            return
        bound = Bound(self.kernel, buffers)
        self.free[:] = [(kind, bound, bound.entry, bound.address, *buffers, *bound.outputs)]


_SOURCE = """
def _make(_free, _general, _result, _shapes):
    _new, _pop, _push = tuple.__new__, _free.pop, _free.append
    {shapes}, = _shapes
    def numpy(*, {parameters}, **_more):
        _ready = None
        try:
            _ready = _pop()
            _kind, _bound, _entry, _address, {ready}, = _ready
            if {unlike} or _more:
                raise AttributeError
            {copies}
        except (IndexError, AttributeError):  # nothing is ready, this is no array, or another one
            pass
        else:
            _entry(_address)
            _found = _new(_result, ({results}))
            _push(_ready)
            return _found
        if _ready is not None:
            _push(_ready)
        return _general({{{given}, **_more}})
    return numpy
"""


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
