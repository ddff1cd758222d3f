"""A flag per sample that says whether everything a program computed was finite."""

from __future__ import annotations

import casadi as ca

from costate.kernel.ir.program import Builder, Program, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.finite import Finite
from costate.kernel.ops.scan import Scan
from costate.kernel.ops.walk import Walk


def with_finite_flag(program: Program) -> Program:
    """Return the program with one more output: 1 for samples in which everything the stages produced was finite, else 0.

    Looked at are the results of all stages and the carried states of scans at every step; what a selection did not select
    inside straight-line code does not count.
    """
    b = Builder()
    values: dict[Var, Var] = {v: b.input(v.size) for v in program.inputs}
    flag = b.stage(Straight.of("finite", [], [ca.SX.ones(1)]))[0]
    for s in program.stages:
        ins = [values[v] for v in s.inputs]
        if isinstance(s.op, Scan):
            op = s.op.with_finite_flag()
            carries, rest = ins[: s.op.n_carry], ins[s.op.n_carry :]
            outs = b.stage(op, *carries, flag, *rest)
            flag = outs.pop(s.op.n_carry)
        else:
            outs = b.stage(s.op, *ins)
            seen = outs[: len(s.op.states) + len(s.op.scatter)] if isinstance(s.op, Walk) else outs
            flag = b.stage(Finite(tuple(v.size for v in seen)), flag, *seen)[0]
        values.update(zip(s.outputs, outs, strict=True))
    return b.finish(*(values[v] for v in program.outputs), flag)
