"""Loops, from the Python function that writes one to an address that is called with NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from costate.core.fork import COMPILING
from costate.draw.compiled.code import F32, F64, I8, I32, I64, Buffer, Code, Number
from costate.kernel.ir.program import digest
from costate.kernel.machine import cache
from costate.kernel.machine.artifact import Artifact
from costate.kernel.machine.jit import Library
from costate.kernel.machine.target import host

ARRAYS = {np.dtype(d): k for d, k in (("f4", F32), ("f8", F64), ("u1", I8), ("i4", I32))}
"""Type of an array's elements -> type of the machine's."""
Write = Callable[[Code, Any], None]
"""Writes a loop, given its arguments as attributes of one object."""
SCALARS = {float: (F64, ctypes.c_double), int: (I64, ctypes.c_int64)}


class Loop:
    """A function of arrays and numbers that fills arrays. It is compiled when it is first called."""

    def __init__(self, write: Write, arguments: dict[str, Any]):
        self.write, self.arguments, self.name, self.__doc__ = write, arguments, write.__name__, write.__doc__

    def __call__(self, **given: Any) -> None:
        """Run. Arrays are contiguous and of the right type: they are not converted."""
        self._function(*[_machine_value(name, given[name], kind) for name, kind in self.arguments.items()])

    def text(self) -> str:
        """Return LLVM's code, not yet optimised."""
        module = ir.Module(self.name)
        kinds = [SCALARS[k][0] if k in SCALARS else ARRAYS[np.dtype(k)].as_pointer() for k in self.arguments.values()]
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), self.name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        code, values = Code(builder), SimpleNamespace()
        for value, (name, kind) in zip(function.args, self.arguments.items(), strict=True):
            if kind not in SCALARS:
                value.add_attribute("noalias")
            setattr(values, name, Number(code, value) if kind in SCALARS else Buffer(code, value))
        self.write(code, values)
        builder.ret_void()
        return str(module)

    @cached_property
    def _function(self) -> Any:
        kinds = [SCALARS[k][1] if k in SCALARS else ctypes.c_void_p for k in self.arguments.values()]
        self._library = Library([_object(self.text())], [self.name], {})
        return ctypes.CFUNCTYPE(None, *kinds)(self._library.address(self.name))


def loop(**arguments: Any) -> Callable[[Write], Loop]:
    """Return a decorator that makes a loop of a function that writes one.

    arguments: name -> type of the elements of an array, such as np.float32; or int or float for a number.
    """
    return lambda write: Loop(write, arguments)


def _machine_value(name: str, value: Any, kind: Any) -> Any:
    if kind in SCALARS:
        return kind(value)
    if value.dtype != kind or not value.flags.c_contiguous:
        raise TypeError(f"{name} is a contiguous array of {np.dtype(kind)}; {value.dtype} given")
    return value.ctypes.data


def _object(text: str) -> bytes:
    """Return optimised machine code, from the cache of kernels if it is there."""
    key = cache.entry_key(digest(text), "loop", "", host())
    return cache.obtained(key, lambda: _compiled(text)).images[0]


def _compiled(text: str) -> Artifact:
    with COMPILING:
        machine = host().machine()
        module = llvm.parse_assembly(text)
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization = tuning.slp_vectorization = True
        passes = llvm.create_pass_builder(machine, tuning)
        passes.getModulePassManager().run(module, passes)
        return Artifact((machine.emit_object(module),), 0, 0, 0, 0, 0, 0, 0.0, ())
