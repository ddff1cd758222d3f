"""Branches: run a program only if some lane needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.prune import prune


@dataclass(frozen=True, eq=False)
class Cond(Op):
    """inputs: condition (1), then the arguments of both programs; outputs of `then` where the condition is not zero, else those of
    `otherwise`. A program runs if any lane of the block wants it. A condition that is NaN makes NaN."""

    then: Program
    otherwise: Program

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (1, *self.then.in_sizes)

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.then.out_sizes

    def describe(self) -> tuple[Any, ...]:
        return (self.then.key, self.otherwise.key)

    def bodies(self) -> list[Program]:
        return [self.then, self.otherwise]

    def check(self) -> None:
        """Raise if the branches take or return different sizes."""
        yes, no = self.then, self.otherwise
        if yes.in_sizes != no.in_sizes or yes.out_sizes != no.out_sizes:
            raise ValueError(
                f"both branches must take and return the same sizes: {yes.in_sizes} -> {yes.out_sizes} and "
                f"{no.in_sizes} -> {no.out_sizes}"
            )

    def writes_rows(self, k: int, row_size: int) -> bool:
        made = [next((s for s in p.stages if p.outputs[k] in s.outputs), None) for p in self.bodies()]
        places = [(s, s.outputs.index(p.outputs[k])) for s, p in zip(made, self.bodies(), strict=True) if s]
        return len(places) == 2 and all(s.op.writes_rows(i, row_size) for s, i in places)

    def evaluate(self, *inputs: Array) -> list[Array]:
        condition, *args = inputs
        yes, no = self.then.evaluate(*args), self.otherwise.evaluate(*args)
        chosen = [np.where(condition != 0, a, b) for a, b in zip(yes, no, strict=True)]
        return [np.where(np.isnan(condition), np.nan, c) for c in chosen]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        moving = [k for k, t in enumerate(tans[1:]) if t is not None]
        if not moving:
            return b.stage(self, *ins), [None] * len(self.out_sizes)
        op = Cond(jvp(self.then, moving), jvp(self.otherwise, moving))
        return b.stage(self, *ins), list(b.stage(op, *ins, *(t for t in tans[1:] if t is not None)))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        of = [k for k, s in enumerate(seeds) if s is not None]
        to = [k for k, w in enumerate(wrt[1:]) if w]
        grads: list[Var | None] = [None] * len(ins)
        if to:
            op = Cond(vjp(self.then, to, of), vjp(self.otherwise, to, of))
            for k, g in zip(to, b.stage(op, *ins, *(s for s in seeds if s is not None)), strict=True):
                grads[k + 1] = g
        return grads

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        outs = [k for k, u in enumerate(used) if u]
        needed = [a or c for a, c in zip(self.then.depends_on(used), self.otherwise.depends_on(used), strict=True)]
        ins = [k for k, n in enumerate(needed) if n]

        def part(p: Program) -> Program:
            p = prune(replace(p, outputs=tuple(p.outputs[k] for k in outs)))
            return replace(p, inputs=tuple(p.inputs[k] for k in ins))

        return Cond(part(self.then), part(self.otherwise)), [0, *(k + 1 for k in ins)], outs
