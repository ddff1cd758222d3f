"""Straight-line stages: a CasADi SX function of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from costate.core.fork import cached_property
from costate.kernel.ir.casadi_ops import check_ops, instructions_of
from costate.kernel.ir.program import Array, Builder, Op, Program, Var


class Straight(Op):
    """A function without loops or branches. Inputs and outputs are dense column vectors."""

    def __init__(self, fn: ca.Function):
        if not fn.is_a("SXFunction"):
            fn = fn.expand()
        self.fn = fn
        self.in_sizes = tuple(fn.numel_in(k) for k in range(fn.n_in()))
        self.out_sizes = tuple(fn.numel_out(k) for k in range(fn.n_out()))

    @classmethod
    def of(cls, name: str, inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> Straight:
        """Make the stage of expressions in symbols."""
        return cls(ca.Function(name, list(inputs), [ca.densify(o) for o in outputs]))

    def describe(self) -> tuple[Any, ...]:
        return (self.fn.serialize().encode(),)

    def evaluate(self, *inputs: Array) -> list[Array]:
        if not inputs:  # CasADi takes the number of columns from its arguments
            return [np.array(v) for v in ca.Function.call(self.fn, [])]
        columns = self.fn.map(inputs[0].shape[1]).call([ca.DM(x) for x in inputs])
        return [np.array(c) for c in columns]

    def symbols(self, prefix: str = "x") -> list[ca.SX]:
        """Return a symbol for every input."""
        return [ca.SX.sym(f"{prefix}{k}", n) for k, n in enumerate(self.in_sizes)]

    def call(self, args: list[ca.SX]) -> list[ca.SX]:
        """Return the outputs as expressions. (Without arguments CasADi would answer with numbers.)"""
        return [ca.SX(y) for y in self.fn.call(args)]

    def tangents(self, active: Sequence[int]) -> tuple[Straight, list[bool]]:
        """Return the function (inputs, tangents of the active ones) -> tangents of the outputs, and which of these can differ from
        0."""
        x = self.symbols()
        y = self.call(x)
        dx = [ca.SX.sym(f"d{k}", self.in_sizes[k]) for k in active]
        dy = _split(ca.jtimes(ca.vertcat(*y), ca.vertcat(*(x[k] for k in active)), ca.vertcat(*dx)), self.out_sizes)
        return Straight.of("jvp", x + dx, dy), [bool(d.nnz()) for d in dy]

    def gradients(self, of: Sequence[int], to: Sequence[int]) -> tuple[Straight, list[bool]]:
        """Return the function (inputs, seeds of the outputs `of`) -> gradients of the inputs `to`, and which of these can differ
        from 0."""
        x = self.symbols()
        y = self.call(x)
        bars = [ca.SX.sym(f"b{k}", self.out_sizes[k]) for k in of]
        flat = ca.jtimes(ca.vertcat(*(y[k] for k in of)), ca.vertcat(*(x[k] for k in to)), ca.vertcat(*bars), True)
        grads = _split(flat, [self.in_sizes[k] for k in to])
        return Straight.of("vjp", x + bars, grads), [bool(g.nnz()) for g in grads]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        op, moved = self.tangents([k for k, t in enumerate(tans) if t is not None])
        found = b.stage(op, *ins, *(t for t in tans if t is not None))
        return b.stage(self, *ins), [t if m else None for t, m in zip(found, moved, strict=True)]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        to = [k for k, w in enumerate(wrt) if w]
        op, moved = self.gradients([k for k, s in enumerate(seeds) if s is not None], to)
        stage = b.stage(op, *ins, *(s for s in seeds if s is not None))
        result: list[Var | None] = [None] * len(ins)
        for k, v, m in zip(to, stage, moved, strict=True):
            if m:
                result[k] = v
        return result

    @cached_property
    def _restrictions(self) -> dict[tuple[bool, ...], tuple[Op, list[int], list[int]]]:
        """Restrictions so far: programs inside programs ask for the same ones again and again."""
        return {}

    def restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        key = tuple(map(bool, used))
        if key not in self._restrictions:
            self._restrictions[key] = self._restrict(key)
        return self._restrictions[key]

    def _restrict(self, used: Sequence[bool]) -> tuple[Op, list[int], list[int]]:
        outs = [k for k, u in enumerate(used) if u]
        needed = set[int]().union(*(self._reads[k] for k in outs))
        ins = sorted(needed)
        if len(outs) == len(self.out_sizes) and len(ins) == len(self.in_sizes):
            return self, ins, outs
        x = self.symbols()
        y = self.call(x)
        return Straight.of(self.fn.name(), [x[k] for k in ins], [y[k] for k in outs]), ins, outs

    @cached_property
    def _reads(self) -> list[frozenset[int]]:
        """Inputs that each output is computed from."""
        masks = [0] * self.fn.sz_w()
        found = [0] * len(self.out_sizes)
        for op, operands, results in instructions_of(self.fn):
            if op == ca.OP_INPUT:
                masks[results[0]] = 1 << operands[0]
            elif op == ca.OP_OUTPUT:
                found[results[0]] |= masks[operands[0]]
            else:
                mask = 0
                for k in operands:
                    mask |= masks[k]
                masks[results[0]] = mask
        return [frozenset(k for k in range(len(self.in_sizes)) if m >> k & 1) for m in found]


def _split(flat: ca.SX, sizes: Sequence[int]) -> list[ca.SX]:
    ends = np.cumsum([0, *sizes])
    return [flat[int(a) : int(b)] for a, b in pairwise(ends)]


def as_program(body: ca.Function | Program) -> Program:
    """Return a CasADi function as a program of one stage."""
    if isinstance(body, Program):
        return body
    _check_columns(body)
    op = Straight(body)
    check_ops(op.fn)
    b = Builder()
    return b.finish(*b.stage(op, *(b.input(n) for n in op.in_sizes)))


def _check_columns(fn: ca.Function) -> None:
    """Raise if an argument is not a dense column: other shapes would be read in CasADi's order, not in that of tensors."""
    for k in range(fn.n_in()):
        if fn.size2_in(k) != 1 or fn.nnz_in(k) != fn.numel_in(k):
            raise ValueError(
                f"body '{fn.name()}': input {k} ({fn.name_in(k)}) is {fn.sparsity_in(k).dim(True)}, expected a dense "
                f"column: pass the elements as a vector and reshape inside"
            )
    for k in range(fn.n_out()):
        if fn.size2_out(k) != 1:
            raise ValueError(
                f"body '{fn.name()}': output {k} ({fn.name_out(k)}) is {fn.sparsity_out(k).dim()}, expected a column: "
                f"return casadi.vec(...) of it"
            )
