"""The kernel compiler: named symbolic functions in, batched, differentiable machine code out.

It knows nothing of robots. `Kernel` compiles one CasADi function, `ProgramBuilder` chains stages (scan, map, table, ...).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costate.kernel.build import ProgramBuilder
    from costate.kernel.kernel import Kernel

__all__ = ["Kernel", "ProgramBuilder"]

# Worker processes import this package; what they don't need is loaded on first use.
_LAZY = {"Kernel": "costate.kernel.kernel", "ProgramBuilder": "costate.kernel.build"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
