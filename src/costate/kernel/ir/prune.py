"""Pruning: drop what no output of a program needs."""

from __future__ import annotations

from costate.kernel.ir.program import Program, Stage


def prune(program: Program) -> Program:
    """Drop stages and parts of stages that no output needs. Inputs stay, so positions do not change."""
    live = set(program.outputs)
    stages: list[Stage] = []
    for s in reversed(program.stages):
        used = [v in live for v in s.outputs]
        if not any(used):
            continue
        op, ins, outs = s.op.restrict(used)
        kept = Stage(op, tuple(s.inputs[k] for k in ins), tuple(s.outputs[k] for k in outs))
        live.update(kept.inputs)
        stages.append(kept)
    return Program(program.inputs, tuple(reversed(stages)), program.outputs)
