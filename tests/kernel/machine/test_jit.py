"""Loading and unloading machine code."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

from costate.kernel.machine.jit import Library, module_text, object_code
from costate.kernel.machine.target import host

ONE_MORE = "define i64 @one_more(i64 %x) {\n  %y = add i64 %x, 1\n  ret i64 %y\n}"


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def load(image: bytes, times: int) -> None:
    for _ in range(times):
        library = Library([image], ["one_more"], {})
        assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("one_more"))(41) == 42
        del library
    gc.collect()


def test_unloaded_code_leaves_no_memory_behind() -> None:
    target = host()
    image = object_code(module_text(target, [ONE_MORE], set(), []), target)
    load(image, 200)
    before = resident()
    load(image, 600)
    assert resident() - before < 1_500_000  # LLVM's linker on its own would keep 5.4 MB
