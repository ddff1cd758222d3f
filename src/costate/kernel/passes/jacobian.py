"""Jacobians of programs, as programs."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from costate.kernel.ir.program import Builder, Program, block_of
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.columns import Columns
from costate.kernel.passes.columns import grouped
from costate.kernel.passes.linearize import linearized
from costate.kernel.passes.optimize import optimize


def jacobian(program: Program, of: int, wrt: int, values: Sequence[int] = ()) -> Program:
    """Return the program of the Jacobian d outputs[of] / d inputs[wrt], row by row, then of other outputs' values.

    Straight-line programs are differentiated as a whole, with their sparsity; others are linearised, and the linear rest is run
    column by column.
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
    columns = Columns(grouped(linear))
    shared = [*(ins[k] for k in split.needs), *found[n:]]
    made = b.inline(columns.as_scans(), *shared) if block_of(program) else b.stage(columns, *shared)
    return b.finish(*made, *found[1:n])


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
