"""The relative spacing of the numbers that a kernel computes with: 2^-52 in float64, 2^-23 in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costate.kernel.ir.program import Array, Builder, Op, Var

EPSILON = {8: 2.0**-52, 4: 2.0**-23}
"""Bytes of a number -> spacing."""


@dataclass(frozen=True, eq=False)
class Epsilon(Op):
    """A number that straight-line code cannot know, since it is written before the number type is chosen."""

    in_sizes = ()
    out_sizes = (1,)

    def describe(self) -> tuple[Any, ...]:
        return ()

    def evaluate(self, *inputs: Array) -> list[Array]:
        return [np.full((1, 1), EPSILON[8])]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        return b.stage(self), [None]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        return []
