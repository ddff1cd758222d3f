"""Derivatives of programs: forward and reverse mode, as programs."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from costate.kernel.passes import optimize, prune
from costate.kernel.program import Builder, Program, Var
from costate.kernel.stages.scan import Scan
from costate.kernel.stages.straight import Straight, add, zeros


def jvp(program: Program, wrt: Sequence[int], primal: bool = False) -> Program:
    """Tangents of all outputs. Inputs: the program's, then a tangent for each input in wrt. With primal, the outputs
    themselves come first."""
    b = Builder()
    ins = [b.input(n) for n in program.in_sizes]
    values: dict[Var, Var] = dict(zip(program.inputs, ins, strict=True))
    tangents: dict[Var, Var | None] = {program.inputs[k]: b.input(program.in_sizes[k]) for k in wrt}
    for s in program.stages:
        tans = [tangents.get(v) for v in s.inputs]
        args = [values[v] for v in s.inputs]
        if any(tans):
            outs, out_tans = s.op.jvp(b, args, tans)
        else:
            outs, out_tans = b.stage(s.op, *args), [None] * len(s.outputs)
        values.update(zip(s.outputs, outs, strict=True))
        tangents.update(zip(s.outputs, out_tans, strict=True))
    dots = [tangents.get(v) or zeros(b, v.size) for v in program.outputs]
    primals = [values[v] for v in program.outputs] if primal else []
    return prune(b.finish(*primals, *dots))


def vjp(program: Program, wrt: Sequence[int], of: Sequence[int], given: Sequence[int] = ()) -> Program:
    """Gradients of the inputs in wrt. Inputs: the program's, then the `given` outputs, then a seed for each output in `of`.

    Forward stages are run again; where outputs are given, those are used instead of what would recompute them.
    """
    b = Builder()
    values: dict[Var, Var] = {v: b.input(v.size) for v in program.inputs}
    known = {program.outputs[k]: b.input(program.out_sizes[k]) for k in given}
    bars: dict[Var, Var] = {}
    for k in of:
        _accumulate(b, bars, program.outputs[k], b.input(program.out_sizes[k]))

    active = {program.inputs[k] for k in wrt}
    trail = []
    for s in program.stages:
        ins = [values[v] for v in s.inputs]
        outs, kept = s.op.replay(b, ins, [known.get(v) for v in s.outputs])
        values.update(zip(s.outputs, outs, strict=True))
        if any(v in active for v in s.inputs):
            active.update(s.outputs)
            trail.append((s, ins, outs, kept))

    for s, ins, outs, kept in reversed(trail):
        seeds = [bars.get(v) for v in s.outputs]
        if not any(seeds):
            continue
        grads = s.op.vjp(b, ins, outs, kept, seeds, [v in active for v in s.inputs])
        for v, g in zip(s.inputs, grads, strict=True):
            if g is not None and v in active:
                _accumulate(b, bars, v, g)
    return prune(b.finish(*(bars.get(program.inputs[k]) or zeros(b, program.in_sizes[k]) for k in wrt)))


def jacobian(program: Program, of: int, wrt: int) -> Program:
    """d outputs[of] / d inputs[wrt], row by row. Straight-line programs are differentiated as a whole, with their sparsity; others
    column by column, in a scan over the tangents."""
    program = optimize(Program(program.inputs, program.stages, (program.outputs[of],)))
    ops = [s.op for s in program.stages]
    if all(isinstance(op, Straight) for op in ops):
        return _straight_jacobian(program, wrt)
    (rows,), columns = program.out_sizes, program.in_sizes[wrt]
    push = jvp(program, [wrt])
    push = Program((push.inputs[-1], *push.inputs[:-1]), push.stages, push.outputs)
    b = Builder()
    ins = [b.input(n) for n in program.in_sizes]
    basis = b.stage(Straight.of("basis", [], [ca.vec(ca.SX(ca.DM.eye(columns)))]))[0]
    (stacked,) = b.stage(Scan(push, columns, 0, 1, ()), basis, *ins)
    j = ca.SX.sym("j", rows * columns)
    turn = Straight.of("transpose", [j], [ca.vec(ca.reshape(j, rows, columns).T)])
    return b.finish(*b.stage(turn, stacked))


def _straight_jacobian(program: Program, wrt: int) -> Program:
    x = [ca.SX.sym(f"x{k}", n) for k, n in enumerate(program.in_sizes)]
    values = dict(zip(program.inputs, x, strict=True))
    for s in program.stages:
        assert isinstance(s.op, Straight)
        values.update(zip(s.outputs, s.op.call([values[v] for v in s.inputs]), strict=True))
    j = ca.jacobian(values[program.outputs[0]], x[wrt])
    b = Builder()
    return b.finish(*b.stage(Straight.of("jacobian", x, [ca.vec(j.T)]), *(b.input(n) for n in program.in_sizes)))


def _accumulate(b: Builder, bars: dict[Var, Var], v: Var, g: Var) -> None:
    bars[v] = add(b, bars[v], g) if v in bars else g
