"""Branches: run a program only if some lane needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.kernel.ir.program import Array, Builder, Op, Program, Var

if TYPE_CHECKING:
    from costate.kernel.codegen.emit import Emitter, Place


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

    def evaluate(self, *inputs: Array) -> list[Array]:
        condition, *args = inputs
        yes, no = self.then.evaluate(*args), self.otherwise.evaluate(*args)
        chosen = [np.where(condition != 0, a, b) for a, b in zip(yes, no, strict=True)]
        return [np.where(np.isnan(condition), np.nan, c) for c in chosen]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        from costate.kernel.ir.derive import jvp

        moving = [k for k, t in enumerate(tans[1:]) if t is not None]
        if not moving:
            return b.stage(self, *ins), [None] * len(self.out_sizes)
        op = Cond(jvp(self.then, moving), jvp(self.otherwise, moving))
        return b.stage(self, *ins), list(b.stage(op, *ins, *(t for t in tans[1:] if t is not None)))

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        from costate.kernel.ir.derive import vjp

        of = [k for k, s in enumerate(seeds) if s is not None]
        to = [k for k, w in enumerate(wrt[1:]) if w]
        grads: list[Var | None] = [None] * len(ins)
        if to:
            op = Cond(vjp(self.then, to, of), vjp(self.otherwise, to, of))
            for k, g in zip(to, b.stage(op, *ins, *(s for s in seeds if s is not None)), strict=True):
                grads[k + 1] = g
        return grads

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        from costate.kernel.ir.passes import prune

        outs = [k for k, u in enumerate(used) if u]
        needed = [a or c for a, c in zip(self.then.depends_on(used), self.otherwise.depends_on(used), strict=True)]
        ins = [k for k, n in enumerate(needed) if n]

        def part(p: Program) -> Program:
            p = prune(replace(p, outputs=tuple(p.outputs[k] for k in outs)))
            return replace(p, inputs=tuple(p.inputs[k] for k in ins))

        return Cond(part(self.then), part(self.otherwise)), [0, *(k + 1 for k in ins)], outs

    def emit(self, e: Emitter, ins: Sequence[Place], outs: Sequence[Place]) -> None:
        n = e.n
        condition = e.pointer(ins[0])
        args = [e.pointer(p) for p in ins[1:]]
        targets = [e.pointer(p) for p in outs]
        others = [e.reserve(size) for size in self.out_sizes]
        other_pointers = [e.pointer(p) for p in others]
        value = e.load(n.vec, condition)
        yes = e.new(f"fcmp une {n.vec} {value}, zeroinitializer")
        bits = f"i{n.width}"
        mask = e.new(f"bitcast {n.mask} {yes} to {bits}")
        with e.when(e.new(f"icmp ne {bits} {mask}, 0")):
            e.call(e.unit.function(self.then), args, targets)
        with e.when(e.new(f"icmp ne {bits} {mask}, -1")):
            e.call(e.unit.function(self.otherwise), args, other_pointers)
        for target, other, size in zip(targets, other_pointers, self.out_sizes, strict=True):
            e.helper("vblend", f"ptr {target}", f"ptr {other}", f"ptr {condition}", f"i64 {size}")
        for region, size in zip(others, self.out_sizes, strict=True):
            e.release(region, size)
