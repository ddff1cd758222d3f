"""Groups of columns: the linear part of a Jacobian, cut so that zeros of a tangent cost nothing.

A column of a Jacobian moves few values at first (one leg of a robot), and nearly all in the end (what the legs carry). So the
straight-line code that tangents enter is cut in two. The first piece is written anew for every group of columns next to each other,
without what their tangents do not move; the second one, which every group needs, and all stages after it are the same code for all.

Where to cut the columns into groups is a shortest path: a group costs its operations, once per column and some times more for
being code of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

import casadi as ca

from costate.kernel.ir.casadi_ops import instructions_of
from costate.kernel.ir.program import Builder, Program, Stage, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.passes.optimize import optimize

OWN_CODE = 1
"""Columns that could be computed for what it costs that a group has code of its own."""
CALLS = 100
"""Operations that could be done while a group is called."""
NOTHING = ca.SX(1, 1)
"""A term of a sum that is not there."""


def grouped(linear: Program) -> tuple[Program, ...]:
    """Split (tangent, shared) -> outputs into programs (part of the tangent, shared) -> outputs of columns next to each other."""
    linear = optimize(linear)
    tangent = linear.inputs[0]
    head = linear.stages[0] if linear.stages else None
    if head is None or not isinstance(head.op, Straight) or tangent not in head.inputs:
        return (linear,)
    walk = _Walk(_without_repeats(head.op), head.inputs.index(tangent))
    groups = _cheapest(walk.masks, tangent.size)
    if len(groups) == 1:
        return (linear,)
    first, second = walk.cut(groups)
    return tuple(_group(linear, head, first, second, g) for g in groups)


def _without_repeats(op: Straight) -> ca.Function:
    """Return a function in which nothing is computed twice: costs are those of its instructions."""
    x = op.symbols()
    return ca.Function(op.fn.name(), x, ca.cse(op.call(x)))


def _group(linear: Program, head: Stage, first: ca.Function, second: Straight, group: range) -> Program:
    """Build the program of a group: its own part of the first piece, then what is the same for all."""
    tangent = linear.inputs[0]
    b = Builder()
    part, *shared = (b.input(n) for n in (len(group), *linear.in_sizes[1:]))
    values: dict[Var, Var] = dict(zip(linear.inputs[1:], shared, strict=True))
    own = ca.SX.sym("part", len(group))
    whole = ca.vertcat(ca.SX(group.start, 1), own, ca.SX(tangent.size - group.stop, 1))
    if any(tangent in s.inputs for s in linear.stages[1:]):
        values[tangent] = b.stage(Straight.of("tangent", [own], [whole]), part)[0]
    x = [ca.SX.sym(f"x{k}", v.size) for k, v in enumerate(head.inputs)]
    moved = first.call([whole if v is tangent else s for v, s in zip(head.inputs, x, strict=True)])
    given = [(s, values[v]) for v, s in zip(head.inputs, x, strict=True) if v is not tangent]
    between = b.stage(Straight.of("group", [own, *(s for s, _ in given)], moved), part, *(v for _, v in given))
    found = b.stage(second, *between, *(v for _, v in given))
    values.update(zip(head.outputs, found, strict=True))
    for s in linear.stages[1:]:
        values.update(zip(s.outputs, b.stage(s.op, *(values[v] for v in s.inputs)), strict=True))
    return b.finish(*(values[v] for v in linear.outputs))


@dataclass(frozen=True)
class _Value:
    """An instruction of a function, and what it makes."""

    op: int
    reads: tuple[int, ...]
    """Values it is made of."""
    moved: int
    """Columns whose tangents move it, as bits."""
    leaf: tuple[int, int] | float = 0.0
    """Argument and element of an input; the number that a constant is."""

    def expression(self, x: Sequence[ca.SX], known: Mapping[int, ca.SX]) -> ca.SX:
        """Return it as an expression of the arguments and of the values it is made of."""
        if isinstance(self.leaf, tuple):
            return x[self.leaf[0]][self.leaf[1]]
        if not self.reads:
            return ca.SX(self.leaf)
        args = [known[i] for i in self.reads]
        return ca.SX.unary(self.op, *args) if len(args) == 1 else ca.SX.binary(self.op, *args)


class _Walk:
    """The instructions of a function."""

    def __init__(self, fn: ca.Function, wrt: int):
        self.fn, self.wrt = fn, wrt
        self.values: list[_Value] = []
        self.results: list[tuple[int, int, int]] = []
        """Output, element, value."""
        work: dict[int, int] = {}
        for k, (op, ins, outs) in enumerate(instructions_of(fn)):
            if op == ca.OP_OUTPUT:
                self.results.append((outs[0], outs[1], work[ins[0]]))
                continue
            if op == ca.OP_INPUT:
                made = _Value(op, (), 1 << ins[1] if ins[0] == wrt else 0, (ins[0], ins[1]))
            elif op == ca.OP_CONST:
                made = _Value(op, (), 0, fn.instruction_constant(k))
            else:
                made = self._made(op, *(work[i] for i in ins))
            work[outs[0]] = len(self.values)
            self.values.append(made)

    def _made(self, op: int, *reads: int) -> _Value:
        return _Value(op, reads, reduce(or_, (self.values[i].moved for i in reads)))

    @property
    def masks(self) -> Counter[int]:
        """Set of columns -> number of operations that exactly these move."""
        return Counter(v.moved for v in self.values if v.reads)

    def cut(self, groups: Sequence[range]) -> tuple[ca.Function, Straight]:
        """Cut into what is different for the groups, (inputs) -> between, and what all of them need, (between, inputs but for the
        tangent) -> outputs.

        What the second piece adds to values of the first one is added up there: one number goes from one piece to the other, not
        all terms of a sum.
        """
        bits = [((1 << len(g)) - 1) << g.start for g in groups]
        readers = Counter(i for v in self.values for i in v.reads)
        x = [ca.SX.sym(f"x{k}", self.fn.numel_in(k)) for k in range(self.fn.n_in())]
        between: list[tuple[ca.SX, ca.SX]] = []
        first: dict[int, ca.SX] = {}
        second: dict[int, ca.SX] = {}
        sums: dict[int, tuple[ca.SX, ca.SX]] = {}
        """Values that are not yet brought to the second piece: what they are there, and what the first one adds to it."""

        def later(i: int) -> ca.SX:
            """Return a value as the second piece has it."""
            if i not in second:
                known, added = sums.pop(i, None) or (NOTHING, first[i])
                if added.nnz() and self.values[i].moved:
                    between.append((ca.SX.sym(f"z{len(between)}"), added))
                    added = between[-1][0]
                second[i] = known + added
            return second[i]

        def terms(i: int) -> tuple[ca.SX, ca.SX]:
            """Return a term of a sum: what the second piece has of it, and what the first one has."""
            if i in first and self.values[i].moved:
                return NOTHING, first[i]
            return sums.pop(i) if i in sums and readers[i] == 1 else (later(i), NOTHING)

        for k, v in enumerate(self.values):
            if not all(v.moved & own for own in bits):
                first[k] = v.expression(x, first)
            elif v.op in (ca.OP_ADD, ca.OP_SUB):
                (a, b), (c, d) = map(terms, v.reads)
                sums[k] = ca.SX.binary(v.op, a, c), ca.SX.binary(v.op, b, d)
            else:
                second[k] = v.expression(x, {i: later(i) for i in v.reads})
        outputs = [ca.SX(self.fn.numel_out(k), 1) for k in range(self.fn.n_out())]
        for out, element, v in self.results:
            outputs[out][element] = later(v)
        z, added = (ca.vertcat(ca.SX(0, 1), *part) for part in zip(*between, strict=True))
        others = [s for k, s in enumerate(x) if k != self.wrt]
        return ca.Function("first", x, [added]), Straight.of("common", [z, *others], outputs)


def _cheapest(masks: Counter[int], columns: int) -> list[range]:
    """Return the groups of least cost. What all columns move is no group's own."""
    every = (1 << columns) - 1
    best, cut = [0.0] + [float("inf")] * columns, [0] * (columns + 1)
    for start in range(columns):
        # Operations by the first column from here on that moves them.
        first = [0] * columns
        for moved, n in masks.items():
            later = moved >> start
            if later and moved != every:
                first[start + (later & -later).bit_length() - 1] += n
        own = 0
        for stop in range(start + 1, columns + 1):
            own += first[stop - 1]
            cost = best[start] + own * (stop - start) + (own + masks[every] + CALLS) * OWN_CODE
            if cost < best[stop]:
                best[stop], cut[stop] = cost, start
    edges = [columns]
    while edges[-1]:
        edges.append(cut[edges[-1]])
    return [range(a, b) for a, b in pairwise(reversed(edges))]
