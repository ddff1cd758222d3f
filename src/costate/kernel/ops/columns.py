"""Matrices of linear programs, column by column: what a Jacobian is made of once its program has been linearised.

Columns next to each other that move the same values are a group with a program of its own, in which everything else has dropped
out. A block of samples takes a column at a time; a single sample, whose lanes would all compute the same, takes a column per lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.scan import Scan


@dataclass(frozen=True, eq=False)
class Columns(Op):
    """Inputs: what all columns share. Output: the matrix (rows, columns), row by row."""

    groups: tuple[Program, ...]
    """Programs of the groups in order: (part of a tangent (columns of the group,), what all share) -> column (rows,)."""

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.groups[0].in_sizes[1:]

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.rows * self.columns,)

    @property
    def rows(self) -> int:
        return self.groups[0].out_sizes[0]

    @property
    def columns(self) -> int:
        return sum(self.widths)

    @property
    def widths(self) -> list[int]:
        """Number of columns of every group."""
        return [g.in_sizes[0] for g in self.groups]

    def describe(self) -> tuple[Any, ...]:
        return tuple(g.key for g in self.groups)

    def bodies(self) -> list[Program]:
        return [g for g, n in zip(self.groups, self.widths, strict=True) for _ in range(n)]

    def writes_rows(self, k: int, row_size: int) -> bool:
        return row_size == self.columns

    def evaluate(self, *inputs: Array) -> list[Array]:
        batch = max((x.shape[1] for x in inputs), default=1)
        seeds = [(g, np.eye(n)[:, [j]]) for g, n in zip(self.groups, self.widths, strict=True) for j in range(n)]
        found = [np.broadcast_to(g.evaluate(e, *inputs)[0], (self.rows, batch)) for g, e in seeds]
        return [np.stack(found, 1).reshape(-1, batch)]

    def as_scans(self) -> Program:
        """Return the same as a program of loops, one for every group."""
        b = Builder()
        shared = [b.input(n) for n in self.in_sizes]
        stacked = []
        for g, n in zip(self.groups, self.widths, strict=True):
            basis = b.stage(Straight.of("basis", [], [ca.vec(ca.SX(ca.DM.eye(n)))]))[0]
            stacked.append(b.stage(Scan(g, n, 0, 1, ()), basis, *shared)[0])
        parts = [ca.SX.sym(f"j{k}", v.size) for k, v in enumerate(stacked)]
        turned = ca.horzcat(*(ca.reshape(p, self.rows, n) for p, n in zip(parts, self.widths, strict=True))).T
        return b.finish(*b.stage(Straight.of("transpose", parts, [ca.vec(turned)]), *stacked))

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        moving = [k for k, t in enumerate(tans) if t is not None]
        op = Columns(tuple(jvp(g, [1 + k for k in moving]) for g in self.groups))
        return b.stage(self, *ins), list(b.stage(op, *ins, *(t for t in tans if t is not None)))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        to = [k for k, w in enumerate(wrt) if w]
        (seed,) = seeds
        assert seed is not None
        found = b.inline(vjp(self.as_scans(), to, [0]), *ins, seed)
        grads: list[Var | None] = [None] * len(ins)
        for k, g in zip(to, found, strict=True):
            grads[k] = g
        return grads

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        reads = [any(r) for r in zip(*(g.depends_on([True])[1:] for g in self.groups), strict=True)]
        if all(reads):
            return self, list(range(len(reads))), [0]
        kept = [k for k, r in enumerate(reads) if r]
        groups = (Program((g.inputs[0], *(g.inputs[1 + k] for k in kept)), g.stages, g.outputs) for g in self.groups)
        return Columns(tuple(groups)), kept, [0]
