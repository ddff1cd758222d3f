"""Optimisation of programs: what is unused is dropped, neighbouring straight-line stages become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from costate.kernel.ir.program import Program, Stage, Var
from costate.kernel.ir.prune import prune
from costate.kernel.ir.straight import Straight
from costate.kernel.ops.scan import Scan
from costate.kernel.ops.walk import Walk


def optimize(program: Program) -> Program:
    """Return a program that computes the same with less code: what every program goes through before it is lowered."""
    return prune(fuse(_inside_loops(prune(program))))


def _inside_loops(program: Program) -> Program:
    """Optimise the bodies of loops: an adjoint's body adds what it finds to sums, which fuses into multiply-adds."""
    stages = tuple(
        replace(s, op=replace(s.op, body=optimize(s.op.body))) if isinstance(s.op, Scan | Walk) else s
        for s in program.stages
    )
    return Program(program.inputs, stages, program.outputs)


def fuse(program: Program) -> Program:
    """Make one SX function of every run of straight-line stages, so that common subexpressions meet."""
    stages: list[Stage] = []
    run: list[Stage] = []
    for s in _straight_together(program.stages):
        if isinstance(s.op, Straight):
            run.append(s)
            continue
        stages += _merge(run, program)
        run = []
        stages.append(s)
    return Program(program.inputs, tuple(stages + _merge(run, program)), program.outputs)


def _straight_together(stages: Sequence[Stage]) -> list[Stage]:
    """Move straight-line stages down to just before they are first needed by another kind of stage, where they meet others."""
    ordered: list[Stage] = []
    waiting: list[Stage] = []
    for s in stages:
        if isinstance(s.op, Straight):
            waiting.append(s)
            continue
        needed = set(s.inputs)
        now: list[Stage] = []
        for w in reversed(waiting):
            if any(v in needed for v in w.outputs):
                needed.update(w.inputs)
                now.append(w)
        chosen = {id(w) for w in now}
        ordered += list(reversed(now))
        waiting = [w for w in waiting if id(w) not in chosen]
        ordered.append(s)
    return ordered + waiting


def _merge(run: list[Stage], program: Program) -> list[Stage]:
    if len(run) < 2:
        return run
    made: dict[Var, ca.SX] = {}
    outside: dict[Var, ca.SX] = {}
    for s in run:
        args = []
        for v in s.inputs:
            if v not in made and v not in outside:
                outside[v] = ca.SX.sym(f"x{len(outside)}", v.size)
            args.append(made.get(v, outside.get(v)))
        made.update(zip(s.outputs, _call(s.op, args), strict=True))
    inside = {id(s) for s in run}
    elsewhere = set(program.outputs)
    for s in program.stages:
        if id(s) not in inside:
            elsewhere.update(s.inputs)
    outputs = [v for v in made if v in elsewhere]
    op = Straight.of("fused", list(outside.values()), [made[v] for v in outputs])
    return [Stage(op, tuple(outside), tuple(outputs))]


def _call(op: object, args: list[ca.SX]) -> list[ca.SX]:
    assert isinstance(op, Straight)
    return op.call(args)
