"""Jacobians of programs, as programs."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from costate.kernel.ir.program import Builder, Program, Var, block_of
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.columns import Columns
from costate.kernel.ops.cond import Cond
from costate.kernel.passes.columns import grouped
from costate.kernel.passes.condense import condensed
from costate.kernel.passes.linearize import linearized
from costate.kernel.passes.optimize import optimize


def jacobian(program: Program, of: int, wrt: int, values: Sequence[int] = ()) -> Program:
    """Return the program of the Jacobian d outputs[of] / d inputs[wrt], row by row, then of other outputs' values.

    Straight-line programs are differentiated as a whole, with their sparsity; others are linearised, and the linear rest is run
    column by column, once solves have become matrices.
    """
    program = optimize(Program(program.inputs, program.stages, tuple(program.outputs[k] for k in (of, *values))))
    if all(isinstance(s.op, Straight) for s in program.stages):
        return _straight_jacobian(program, wrt)
    split = linearized(program, [wrt], program.in_sizes[wrt])
    b = Builder()
    ins = [b.input(n) for n in program.in_sizes]
    found = b.inline(split.forward, *ins)
    n = 1 + len(values)
    linear = Program(split.linear.inputs, split.linear.stages, split.linear.outputs[:1])
    shared = [*(ins[k] for k in split.needs), *found[n:]]
    made = b.inline(_matrix(linear, whole=bool(block_of(program))), *shared)
    return b.finish(*made, *found[1:n])


def _matrix(linear: Program, whole: bool) -> Program:
    """Return the program (shared) -> matrix of a linear program (tangent, shared) -> outputs. whole: lanes are not samples."""
    if whole:
        return Columns(grouped(linear)).as_scans()
    conditions, usual = _usual(linear)
    if not conditions:
        return _by_columns(linear)
    # Branches hide zeros of the tangents. Where a sample takes the second program of all of them, they are not in the way.
    b = Builder()
    shared = [b.input(n) for n in linear.in_sizes[1:]]
    flags = [ca.SX.sym(f"c{k}") for k in range(len(conditions))]
    some = Straight.of("some", flags, [sum((ca.fabs(c) for c in flags), ca.SX(0))])
    taken = b.stage(some, *(shared[k - 1] for k in conditions))[0]
    return b.finish(*b.stage(Cond(_by_columns(linear), _by_columns(usual)), taken, *shared))


def _by_columns(linear: Program) -> Program:
    """Return the same for a program whose lanes are samples, with matrices for what is long between few values and few."""
    b = Builder()
    shared = [b.input(n) for n in linear.in_sizes[1:]]
    while found := condensed(linear):
        shared += b.inline(found.matrix, *shared)
        linear = found.linear
    return b.finish(*b.stage(Columns(grouped(linear)), *shared))


def _usual(linear: Program) -> tuple[list[int], Program]:
    """Return the inputs of a program that are conditions of its branches, and it with the second programs in place of these."""
    b = Builder()
    values: dict[Var, Var] = {v: b.input(v.size) for v in linear.inputs}
    conditions = []
    for s in linear.stages:
        ins = [values[v] for v in s.inputs]
        if isinstance(s.op, Cond) and s.inputs[0] in linear.inputs:
            conditions.append(linear.inputs.index(s.inputs[0]))
            found = b.inline(s.op.otherwise, *ins[1:])
        else:
            found = b.stage(s.op, *ins)
        values.update(zip(s.outputs, found, strict=True))
    usual = b.finish(*(values[v] for v in linear.outputs))
    if not conditions:
        return [], linear
    inner, usual = _usual(usual)  # branches inside of branches
    return list(dict.fromkeys(conditions + inner)), usual


def _straight_jacobian(program: Program, wrt: int) -> Program:
    x = [ca.SX.sym(f"x{k}", n) for k, n in enumerate(program.in_sizes)]
    values = dict(zip(program.inputs, x, strict=True))
    for s in program.stages:
        assert isinstance(s.op, Straight)
        values.update(zip(s.outputs, s.op.call([values[v] for v in s.inputs]), strict=True))
    y, *others = (values[v] for v in program.outputs)
    made = [ca.vec(ca.jacobian(y, x[wrt]).T), *others]
    b = Builder()
    return b.finish(*b.stage(Straight.of("jacobian", x, made), *(b.input(n) for n in program.in_sizes)))
