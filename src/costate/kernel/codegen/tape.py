"""Tapes: straight-line code as a list of static single assignments. What the lowering reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NOT_COUNTED = {"input", "const", "second"}
"""Instructions that are no arithmetic."""


@dataclass(frozen=True)
class Tape:
    """Static single assignments. Instruction i defines value i.

    Instructions are tuples: ("input", k, j) element j of input k; ("const", c); (op, a), (op, a, b), (op, a, b, c) with
    values a, b, c. Ops are those of CasADi plus fma(a, b, c) = a b + c, fms = a b - c, fnma = c - a b,
    select(c, a, b) = a if c else b, and sincos(x) or cossin(x): its value is the first of the two,
    ("second", i) is the other one.
    """

    instructions: list[tuple[Any, ...]]
    outputs: list[tuple[int, int, int]]
    """Triples (output, element, value)."""

    @property
    def n_ops(self) -> int:
        """Arithmetic operations, not counting inputs and constants."""
        return sum(i[0] not in NOT_COUNTED for i in self.instructions)

    @property
    def flops(self) -> int:
        """Floating point operations: a fused multiply-add counts two, a function call one."""
        return self.n_ops + sum(i[0] in ("fma", "fms", "fnma") for i in self.instructions)
