"""A budget for checks: choose which checks of many functions are made.

Nearly all the time of a check is spent on compiling its kernels, and that grows with their operations. So the budget is counted in
operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from costate.kernel import Kernel
from costate.kernel.ir.program import ops_of
from costate.kernel.ir.straight import Straight

BUDGET = 300_000
"""Operations to compile: half a minute at 10,000 per second and core, which is an estimate and is not measured here."""

FIRST = 3.7
"""Operations of a function and its gradient together, as a multiple of those of the function; counted on a UR5, as are EXTRAS."""
EXTRAS = {"forward_mode": 2.7, "second_order": 7.8, "float32": 3.7}
"""Operations of the kernels of further checks, as multiples of those of the function; in order of importance."""


@dataclass(frozen=True)
class Checks:
    """The checks of a function beyond its value, and its gradient against differences."""

    forward_mode: bool = False
    """Check the JVP, and its duality with the VJP."""
    second_order: bool = False
    """Check the derivative of the gradient."""
    float32: bool = False
    """Compare float32 with float64."""


ALL = Checks(True, True, True)


def plan(kernels: Mapping[str, Kernel], wanted: Checks = ALL, budget: float = BUDGET) -> dict[str, Checks]:
    """Choose the checks of each function: one kind after the other, small functions first, as long as the budget lasts."""
    sizes = {name: operations(kernel) for name, kernel in kernels.items()}
    left = budget - FIRST * sum(sizes.values())
    chosen = dict.fromkeys(kernels, Checks())
    for kind, factor in EXTRAS.items():
        for name in sorted(sizes, key=lambda n: sizes[n]):
            if getattr(wanted, kind) and factor * sizes[name] <= left:
                left -= factor * sizes[name]
                chosen[name] = replace(chosen[name], **{kind: True})
    return chosen


def left_out(chosen: Mapping[str, Checks], wanted: Checks = ALL) -> list[str]:
    """Describe the checks that the budget did not allow."""
    words = {"forward_mode": "JVP and duality", "second_order": "second order", "float32": "float32"}
    found = []
    for kind, word in words.items():
        missing = [name for name, c in chosen.items() if getattr(wanted, kind) and not getattr(c, kind)]
        if missing:
            found.append(f"{word} left out, to save time, for {', '.join(missing)}; --full checks them too")
    return found


def operations(kernel: Kernel) -> int:
    """Count the operations of a kernel that is not yet compiled; the body of a loop counts once."""
    return sum(op.fn.n_instructions() for op in ops_of(kernel.program) if isinstance(op, Straight))
