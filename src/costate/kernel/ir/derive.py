"""Derivatives of programs: forward and reverse mode, as programs."""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.ir.program import Builder, Program, Var
from costate.kernel.ir.prune import prune
from costate.kernel.ir.vector_ops import add, zeros


def jvp(program: Program, wrt: Sequence[int], primal: bool = False) -> Program:
    """Differentiate a program forward: tangents of all outputs. Inputs: the program's, then a tangent for each input in wrt. With
    primal, the outputs themselves come first."""
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
    """Differentiate a program backward: gradients of the inputs in wrt. Inputs: the program's, then the `given` outputs, then a
    seed for each output in `of`.

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


def _accumulate(b: Builder, bars: dict[Var, Var], v: Var, g: Var) -> None:
    bars[v] = add(b, bars[v], g) if v in bars else g
