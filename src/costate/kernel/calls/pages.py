"""Large tensors on large pages.

Memory that the system hands out is cleared page by page when it is first written to. For results of many megabytes that takes
longer than most computations, and several times less on large pages, which Linux gives where it is asked to.
"""

from __future__ import annotations

import ctypes
import sys

import torch

LARGE = 2**22
"""Bytes from which it pays: below, the allocator keeps memory for the next call."""
_PAGE = 4096
_HUGE_PAGES = 14  # MADV_HUGEPAGE

_madvise = getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
if _madvise is not None:
    _madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def on_large_pages(t: torch.Tensor) -> torch.Tensor:
    """Return a fresh tensor, after asking the system to put it on large pages if it is large. What the system does about it changes
    times, and nothing else."""
    size = t.numel() * t.element_size()
    if size >= LARGE and _madvise is not None:
        start = -(-t.data_ptr() // _PAGE) * _PAGE
        _madvise(start, (t.data_ptr() + size - start) // _PAGE * _PAGE, _HUGE_PAGES)
    return t
