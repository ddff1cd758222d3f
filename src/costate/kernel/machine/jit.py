"""LLVM: IR text becomes object code, and object code an address that can be called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import count

import llvmlite.binding as llvm

from costate.core.fork import COMPILING
from costate.kernel.machine.target import Target, initialize
from costate.kernel.vecmath import FUNCTIONS, math_module, symbol

LIBRARIES = 16
"""Number of libraries that one linker of LLVM's loads."""
_numbers = count()


def module_text(target: Target, functions: list[str], declarations: set[str], globals_: list[str]) -> str:
    """Return the text of a module: vectors as wide as the registers are legal, nothing is assumed about floating point.

    With a frame pointer the stack can be aligned to whole vectors; without, every spill would straddle two cache lines.
    """
    bits = 8 * target.register
    head = [f'target triple = "{target.triple}"', *globals_, *sorted(declarations)]
    vectors = f'"min-legal-vector-width"="{bits}" "prefer-vector-width"="{bits}"'
    attributes = f'attributes #0 = {{ nounwind "frame-pointer"="all" {vectors} }}'
    return "\n".join([*head, *functions, attributes]) + "\n"


def object_code(text: str, target: Target) -> bytes:
    """Compile IR text. No optimisation passes: the code is straight and already optimised."""
    with COMPILING:
        return _emit(text, target)


def _emit(text: str, target: Target) -> bytes:
    initialize()
    return target.machine().emit_object(llvm.parse_assembly(text))


def assembly(text: str, target: Target) -> str:
    """Compile IR text to assembly text."""
    initialize()
    return target.machine().emit_assembly(llvm.parse_assembly(text))


class Library:
    """Loaded object code. `address(name)` of a function; the code lives as long as this object."""

    def __init__(self, images: list[bytes], exports: list[str], imports: dict[str, int], keep: object = None):
        with COMPILING:
            builder = llvm.JITLibraryBuilder()
            for image in images:
                builder.add_object_img(image)
            for name, address in imports.items():
                builder.import_symbol(name, address)
            for name in exports:
                builder.export_symbol(name)
            number = next(_numbers)
            self._tracker = builder.link(_compiler(number), f"costate{number}")
        self._keep = keep
        self.size = sum(map(len, images))

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return self._tracker[name]

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():  # then, a thread may hold it that does not run any more, and modules lose their contents
            with COMPILING:
                self.__dict__.pop("_tracker", None)


def _compiler(number: int) -> llvm.LLJIT:
    """Return the linker for the library of a number. LLVM keeps 9 KB of an unloaded library until its linker goes: so there are
    many."""
    return _linker(number // LIBRARIES)


@lru_cache(maxsize=1)  # those before live on in their libraries
def _linker(_: int) -> llvm.LLJIT:
    """Make a linker. LLVM's JITLink maps all sections of an object file together, and reaches everything else through tables. The
    older RuntimeDyld maps each section for itself: where the process holds gigabytes, they end up too far apart for the 32 bits
    of an offset, and it aborts."""
    initialize()
    return llvm.create_lljit_compiler(use_jit_link=sys.platform != "win32")


def math_symbols(width: int, dtype: str) -> list[str]:
    """Return the symbols of all vector functions."""
    return [symbol(name, width, dtype) for name in [*FUNCTIONS, "sincos"]]


def math_text(target: Target, dtype: str) -> str:
    return math_module(target.lanes(dtype), dtype)
