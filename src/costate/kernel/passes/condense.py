"""Runs of stages as matrices: what a linear program does from few values to few.

The tangent of a solve is long, but it leads from few numbers, those of the right-hand side, to few, those of the solution. Were it
run for every column of a Jacobian, it would be the longest part of it. Where there are more columns than such a run of stages has
inputs or outputs, its matrix is found once, forwards by unit inputs or backwards by unit outputs, and columns multiply by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import or_
from typing import NamedTuple

import casadi as ca

from costate.kernel.ir.casadi_ops import instructions_of
from costate.kernel.ir.derive import vjp
from costate.kernel.ir.program import Builder, Op, Program, Stage, Var
from costate.kernel.ir.prune import prune
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import Slice, concat
from costate.kernel.ops.columns import Columns
from costate.kernel.ops.scan import Scan
from costate.kernel.passes.optimize import optimize

NO_WORK = (ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST)


@dataclass(frozen=True, eq=False)
class Condensed:
    """A linear program with a matrix in place of some of its stages."""

    matrix: Program
    """Program (what all columns share) -> the matrix."""
    linear: Program
    """Program (tangent, what all columns share, the matrix) -> outputs."""


def condensed(linear: Program) -> Condensed | None:
    """Put a matrix in place of the run of stages of (tangent, shared) -> outputs that saves most by it; None if none does."""
    linear = prune(linear)
    n = linear.in_sizes[0]
    moved = {linear.inputs[0]: [1 << k for k in range(n)]}
    still, moving, costs = list[Stage](), list[Stage](), list[_Cost]()
    for s in linear.stages:
        if not any(v in moved for v in s.inputs):
            still.append(s)
            continue
        found, cost = _moved(s.op, [moved.get(v, [0] * v.size) for v in s.inputs])
        moved.update(zip(s.outputs, found, strict=True))
        moving.append(s)
        costs.append(cost)
    runs = (_Run(linear, still, moving, costs, i, j) for i, j in combinations(range(len(moving) + 1), 2))
    best = max(runs, key=lambda r: r.saved, default=None)
    return best.condensed() if best and best.saved > 0 else None


class _Cost(NamedTuple):
    """Operations of a stage that tangents move: of all its code, and of all columns, whose groups leave out those on zeros."""

    code: int
    columns: int


def _moved(op: Op, ins: list[list[int]]) -> tuple[list[list[int]], _Cost]:
    """Return which columns move each element of the outputs, as bits, and the cost. ins: the same of the inputs."""
    if not isinstance(op, Straight):
        every, code = reduce(or_, (m for v in ins for m in v), 0), _operations(op)
        return [[every] * n for n in op.out_sizes], _Cost(code, every.bit_count() * code)
    work: dict[int, int] = {}
    outs, code, columns = [[0] * n for n in op.out_sizes], 0, 0
    for kind, reads, makes in instructions_of(op.fn):
        if kind == ca.OP_INPUT:
            work[makes[0]] = ins[reads[0]][reads[1]]
        elif kind == ca.OP_OUTPUT:
            outs[makes[0]][makes[1]] = work[reads[0]]
        else:
            work[makes[0]] = reduce(or_, (work[i] for i in reads), 0) if kind != ca.OP_CONST else 0
            code += bool(work[makes[0]])
            columns += work[makes[0]].bit_count()
    return outs, _Cost(code, columns)


class _Run:
    """Some of the stages that a tangent moves, one after the other."""

    def __init__(
        self, linear: Program, still: list[Stage], moving: list[Stage], costs: list[_Cost], start: int, stop: int
    ):
        self.program, self.still, self.costs = linear, still, costs[start:stop]
        self.before, self.stages, self.after = moving[:start], moving[start:stop], moving[stop:]
        moved = {linear.inputs[0], *(v for s in moving for v in s.outputs)}
        made = {v for s in self.stages for v in s.outputs}
        read = dict.fromkeys(v for s in self.stages for v in s.inputs)
        needed = {*linear.outputs, *(v for s in self.after for v in s.inputs)}
        self.ins = [v for v in read if v in moved and v not in made]
        self.outs = [v for s in self.stages for v in s.outputs if v in needed]

    @property
    def width(self) -> int:
        return sum(v.size for v in self.ins)

    @property
    def height(self) -> int:
        return sum(v.size for v in self.outs)

    @property
    def saved(self) -> int:
        """Operations that all columns together would save."""
        own, now = (sum(c) for c in zip(*self.costs, strict=True))
        product = 2 * self.width * self.height
        return now - min(self.width, self.height) * own - self.program.in_sizes[0] * product

    def condensed(self) -> Condensed:
        """Return the program with the run's matrix in place of it."""
        shared = self.program.inputs[1:]
        block = prune(Program((*self.ins, *shared), (*self.still, *self.stages), tuple(self.outs)))
        back = self.height < self.width
        body = _backwards(block, len(self.ins)) if back else _forwards(block, len(self.ins))
        b = Builder()
        (matrix,) = b.stage(Columns((optimize(body),)), *(b.input(v.size) for v in shared))
        found = Var(matrix.size)
        product = Stage(_product(self.ins, self.outs, back), (found, *self.ins), tuple(self.outs))
        stages = (*self.still, *self.before, product, *self.after)
        linear = Program((*self.program.inputs, found), stages, self.program.outputs)
        return Condensed(b.finish(matrix), linear)


def _operations(op: Op) -> int:
    """Return about how many operations a stage runs."""
    if isinstance(op, Straight):
        return sum(kind not in NO_WORK for kind, _, _ in instructions_of(op.fn))
    times = op.steps if isinstance(op, Scan) else 1
    return times * sum(_operations(s.op) for body in op.bodies() for s in body.stages)


def _forwards(block: Program, n: int) -> Program:
    """Return (all n moving inputs as one, shared) -> all outputs as one."""
    b = Builder()
    sizes, rest = block.in_sizes[:n], block.in_sizes[n:]
    unit = b.input(sum(sizes))
    shared = [b.input(m) for m in rest]
    return b.finish(concat(b, *b.inline(block, *_parts(b, unit, sizes), *shared)))


def _backwards(block: Program, n: int) -> Program:
    """Return (seeds of all outputs as one, shared) -> gradients of all n moving inputs as one."""
    b = Builder()
    sizes, rest = block.in_sizes[:n], block.in_sizes[n:]
    unit = b.input(sum(block.out_sizes))
    shared = [b.input(m) for m in rest]
    # It is linear: gradients do not depend on the moving inputs.
    still = b.stage(Straight.of("still", [], [ca.SX.zeros(m) for m in sizes]))
    back = vjp(block, range(n), range(len(block.outputs)))
    found = b.inline(back, *still, *shared, *_parts(b, unit, block.out_sizes))
    return prune(b.finish(concat(b, *found)))


def _parts(b: Builder, whole: Var, sizes: Sequence[int]) -> list[Var]:
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [b.stage(Slice(whole.size, at, n), whole)[0] for at, n in zip(starts, sizes, strict=True)]


def _product(ins: Sequence[Var], outs: Sequence[Var], back: bool) -> Straight:
    """Return (matrix, moving inputs) -> outputs. back: the matrix has a row for every input, else for every output."""
    x = [ca.SX.sym(f"x{k}", v.size) for k, v in enumerate(ins)]
    width, height = (sum(v.size for v in some) for some in (ins, outs))
    m = ca.SX.sym("m", width * height)
    matrix = ca.reshape(m, height, width) if back else ca.reshape(m, width, height).T
    ends = [sum(v.size for v in outs[:k]) for k in range(len(outs) + 1)]
    return Straight.of("product", [m, *x], ca.vertsplit(matrix @ ca.vertcat(*x), ends))
