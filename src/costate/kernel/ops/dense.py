"""Products of a matrix that all samples share and a vector of each: layers of networks.

A value has a vector register for every number, one lane per sample. A matrix that is the same for all samples would take sixteen
times the memory it needs, and the products would wait for it. `Common` puts the numbers of such a value side by side; only
`Dense` reads it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from costate.kernel.ir.program import Array, Builder, Op, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.map import Map


@dataclass(frozen=True, eq=False)
class Common(Op):
    """A value that is the same in all samples, for `Dense`. Where samples differ, it is NaN."""

    size: int

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    def describe(self) -> tuple[Any, ...]:
        return ()

    def evaluate(self, *inputs: Array) -> list[Array]:
        (x,) = inputs
        return [np.where((x == x[:, :1]).all(), x[:, :1], np.nan)]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        return b.stage(self, *ins), [None if t is None else b.stage(self, t)[0] for t in tans]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        return list(seeds)


@dataclass(frozen=True, eq=False)
class Dense(Op):
    """W x or, transposed, W^T x, of a matrix W (rows, columns) that has gone through `Common`."""

    rows: int
    columns: int
    transposed: bool = False

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.rows * self.columns, self.rows if self.transposed else self.columns)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.columns if self.transposed else self.rows,)

    def describe(self) -> tuple[Any, ...]:
        return (self.rows, self.columns, self.transposed)

    def evaluate(self, *inputs: Array) -> list[Array]:
        w, x = inputs
        matrix = w[:, 0].reshape(self.rows, self.columns)
        return [(matrix.T if self.transposed else matrix) @ x]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        (w, x), (dw, dx) = ins, tans
        parts = [b.stage(self, u, v)[0] for u, v in ((dw, x), (w, dx)) if u is not None and v is not None]
        if len(parts) == 2:
            u, v = ca.SX.sym("u", parts[0].size), ca.SX.sym("v", parts[0].size)
            parts = b.stage(Straight.of("add", [u, v], [u + v]), *parts)
        return b.stage(self, *ins), [parts[0]]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        (w, x), (seed,) = ins, seeds
        assert seed is not None
        grads: list[Var | None] = [None, None]
        if wrt[0]:
            grads[0] = b.stage(self._outer(), *((x, seed) if self.transposed else (seed, x)))[0]
        if wrt[1]:
            grads[1] = b.stage(Dense(self.rows, self.columns, not self.transposed), w, seed)[0]
        return grads

    def _outer(self) -> Map:
        """Return the op (a (rows,), b (columns,)) -> a b^T, a row at a time."""
        m, n = self.rows, self.columns
        a, row = ca.SX.sym("a"), ca.SX.sym("b", n)
        b = Builder()
        one, all_ = b.input(1), b.input(n)
        body = b.finish(*b.stage(Straight.of("outer", [a, row], [a * row]), one, all_))
        tables = np.arange(m)[:, None], np.tile(np.arange(n), (m, 1))
        return Map(body, tables, (np.arange(m * n).reshape(m, n),), (m, n), (m * n,))
