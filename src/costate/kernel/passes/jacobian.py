"""Jacobians of programs, as programs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import casadi as ca

from costate.kernel.ir.program import Builder, Program, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.scan import Scan
from costate.kernel.passes.linearize import linearized
from costate.kernel.passes.optimize import optimize

MOST_GROUPS = 4
"""Most groups of columns that are computed apart: each has code of its own."""


def jacobian(program: Program, of: int, wrt: int) -> Program:
    """Return the program of the Jacobian d outputs[of] / d inputs[wrt], row by row.

    Straight-line programs are differentiated as a whole, with their sparsity; others are linearised, and the linear rest is run
    column by column, in a scan over the tangents.
    """
    program = optimize(Program(program.inputs, program.stages, (program.outputs[of],)))
    ops = [s.op for s in program.stages]
    if all(isinstance(op, Straight) for op in ops):
        return _straight_jacobian(program, wrt)
    (rows,), columns = program.out_sizes, program.in_sizes[wrt]
    split = linearized(program, [wrt], columns)
    b = Builder()
    ins = [b.input(n) for n in program.in_sizes]
    _, *coefficients = b.inline(split.forward, *ins)
    shared = [*(ins[k] for k in split.needs), *coefficients]
    stacked = [_columns(b, split.linear, group, columns, shared) for group in _groups(split.linear, columns)]
    j = [ca.SX.sym(f"j{k}", v.size) for k, v in enumerate(stacked)]
    turned = ca.horzcat(*(ca.reshape(part, rows, part.numel() // rows) for part in j)).T
    return b.finish(*b.stage(Straight.of("transpose", j, [ca.vec(turned)]), *stacked))


def _columns(b: Builder, linear: Program, group: range, columns: int, shared: Sequence[Var]) -> Var:
    """Add a scan over some columns; what their tangents do not move drops out of its body."""
    body, size = Builder(), len(group)
    part = ca.SX.sym("part", size)
    tangent = ca.vertcat(ca.SX(group.start, 1), part, ca.SX(columns - group.stop, 1))
    seed, *given = (body.input(n) for n in (size, *linear.in_sizes[1:]))
    outs = body.inline(linear, body.stage(Straight.of("tangent", [part], [tangent]), seed)[0], *given)
    basis = b.stage(Straight.of("basis", [], [ca.vec(ca.SX(ca.DM.eye(size)))]))[0]
    return b.stage(Scan(optimize(body.finish(*outs)), size, 0, 1, ()), basis, *shared)[0]


def _groups(linear: Program, columns: int) -> list[range]:
    """Group columns next to each other that move the same variables."""
    moved: list[set[tuple[int, int]]] = [set() for _ in range(columns)]
    for n, s in enumerate(linear.stages):
        for i in (i for i, v in enumerate(s.inputs) if v is linear.inputs[0]):
            for o in range(len(s.outputs)):
                starts = s.op.fn.jac_sparsity(o, i).colind() if isinstance(s.op, Straight) else range(columns + 1)
                for c in range(columns):
                    if starts[c + 1] > starts[c]:
                        moved[c].add((n, o))
    edges = [0, *(c for c in range(1, columns) if moved[c] != moved[c - 1]), columns]
    if len(edges) - 1 > MOST_GROUPS:
        return [range(columns)]
    return [range(a, b) for a, b in pairwise(edges)]


def _straight_jacobian(program: Program, wrt: int) -> Program:
    x = [ca.SX.sym(f"x{k}", n) for k, n in enumerate(program.in_sizes)]
    values = dict(zip(program.inputs, x, strict=True))
    for s in program.stages:
        assert isinstance(s.op, Straight)
        values.update(zip(s.outputs, s.op.call([values[v] for v in s.inputs]), strict=True))
    j = ca.jacobian(values[program.outputs[0]], x[wrt])
    b = Builder()
    return b.finish(*b.stage(Straight.of("jacobian", x, [ca.vec(j.T)]), *(b.input(n) for n in program.in_sizes)))
