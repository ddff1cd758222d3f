"""Which checks of many functions fit a budget: nearly all that a check costs is compiling its kernels, by their operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from costate.kernel import Kernel
from costate.kernel.ir.program import ops_of
from costate.kernel.ir.straight import Straight

BUDGET = 300_000
"""Operations to compile; at 10,000 per second and core, an estimate that is not measured here, half a minute."""

FIRST = 3.7
"""Operations of a function and its gradient, by those of the function; all of these as counted on a UR5."""
EXTRAS = {"forward_mode": 2.7, "second_order": 7.8, "float32": 3.7}
"""Further checks in order of importance -> operations of their kernels, by those of the function."""


@dataclass(frozen=True)
class Checks:
    """What is checked of a function besides its value, and its gradient against differences."""

    forward_mode: bool = False
    """The JVP, and its duality with the VJP."""
    second_order: bool = False
    float32: bool = False


ALL = Checks(True, True, True)


def plan(kernels: Mapping[str, Kernel], wanted: Checks = ALL, budget: float = BUDGET) -> dict[str, Checks]:
    """Checks by function: one kind after the other, small functions first, as long as the budget lasts."""
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
    """In words, what the budget did not allow."""
    words = {"forward_mode": "JVP and duality", "second_order": "second order", "float32": "float32"}
    found = []
    for kind, word in words.items():
        missing = [name for name, c in chosen.items() if getattr(wanted, kind) and not getattr(c, kind)]
        if missing:
            found.append(f"{word} left out, to save time, for {', '.join(missing)}; --full checks them too")
    return found


def operations(kernel: Kernel) -> int:
    """Of a kernel before it is compiled; the body of a loop counts once."""
    return sum(op.fn.n_instructions() for op in ops_of(kernel.program) if isinstance(op, Straight))
