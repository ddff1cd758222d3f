"""A flag per sample: 1 if all numbers are finite, else 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.kernel.ir.program import Array, Builder, Op, Var


@dataclass(frozen=True, eq=False)
class Finite(Op):
    """Flags: the first input is a flag already set (or not); the others are vectors to look at."""

    sizes: tuple[int, ...]

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (1, *self.sizes)

    out_sizes = (1,)

    def describe(self) -> tuple[Any, ...]:
        return ()

    def evaluate(self, *inputs: Array) -> list[Array]:
        flag = inputs[0] * np.ones((1, max(x.shape[1] for x in inputs)))
        for x in inputs[1:]:
            flag = np.where(np.isfinite(x).all(0, keepdims=True), flag, 0.0)
        return [flag]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        return b.stage(self, *ins), [None]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        return [None] * len(ins)
