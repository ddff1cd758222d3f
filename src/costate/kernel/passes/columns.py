"""Groups of columns: the linear part of a Jacobian, cut so that zeros of a tangent cost nothing.

A column of a Jacobian moves few values at first (one leg of a robot), and nearly all in the end (what the legs carry). So the
straight-line code that tangents enter is cut in two. The first piece is written anew for every group of columns next to each other,
without what their tangents do not move; the second one, which every group needs, and all stages after it are the same code for all.

Where to cut the columns into groups is a shortest path: a group costs its operations, once per column and some times more for
being code of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import casadi as ca

from costate.kernel.ir.program import Builder, Program, Stage, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.passes.optimize import optimize

OWN_CODE = 2
"""Columns that could be computed for what it costs that a group has code of its own."""


def grouped(linear: Program) -> tuple[Program, ...]:
    """Split (tangent, shared) -> outputs into programs (part of the tangent, shared) -> outputs of columns next to each other."""
    linear = optimize(linear)
    tangent = linear.inputs[0]
    head = linear.stages[0] if linear.stages else None
    if head is None or not isinstance(head.op, Straight) or tangent not in head.inputs:
        return (linear,)
    walk = _Walk(head.op.fn, head.inputs.index(tangent))
    groups = _cheapest(walk.masks, tangent.size)
    if len(groups) == 1:
        return (linear,)
    first, second = walk.cut(groups)
    return tuple(_group(linear, head, first, second, g) for g in groups)


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


class _Walk:
    """The instructions of a function, and for each the columns that move it, as bits of a number."""

    def __init__(self, fn: ca.Function, wrt: int):
        self.fn, self.wrt = fn, wrt
        self.steps: list[tuple[int, list[int], int]] = []
        """For every value: operation, values it reads (of an input: argument and element), columns."""
        self.results: list[tuple[int, int, int]] = []
        """Output, element, value."""
        self.constants: dict[int, ca.SX] = {}
        work: dict[int, int] = {}
        for k in range(fn.n_instructions()):
            op, ins, outs = fn.instruction_id(k), fn.instruction_input(k), fn.instruction_output(k)
            if op == ca.OP_OUTPUT:
                self.results.append((outs[0], outs[1], work[ins[0]]))
                continue
            if op == ca.OP_INPUT:
                reads, moved = list(ins), 1 << ins[1] if ins[0] == wrt else 0
            else:
                reads = [work[i] for i in ins]
                moved = 0
                for i in reads:
                    moved |= self.steps[i][2]
            if op == ca.OP_CONST:
                self.constants[len(self.steps)] = ca.SX(fn.instruction_constant(k))
            work[outs[0]] = len(self.steps)
            self.steps.append((op, reads, moved))

    @property
    def masks(self) -> Counter[int]:
        """Set of columns -> number of operations that exactly these move."""
        return Counter(moved for op, _, moved in self.steps if op != ca.OP_INPUT)

    def cut(self, groups: Sequence[range]) -> tuple[ca.Function, Straight]:
        """Cut into what is different for the groups, (inputs) -> between, and what all of them need, (between, inputs but for the
        tangent) -> outputs."""
        bits = [((1 << len(g)) - 1) << g.start for g in groups]
        common = [all(moved & own for own in bits) for _, _, moved in self.steps]
        between = {
            i: None
            for (op, reads, _), late in zip(self.steps, common, strict=True)
            if late and op != ca.OP_INPUT
            for i in reads
            if not common[i] and self.steps[i][2]
        }
        between |= {v: None for _, _, v in self.results if not common[v] and self.steps[v][2]}
        x = [ca.SX.sym(f"x{k}", self.fn.numel_in(k)) for k in range(self.fn.n_in())]
        early = self._values(x, {}, [not late for late in common])
        z = ca.SX.sym("z", len(between))
        place = {v: z[k] for k, v in enumerate(between)}
        late = self._values(x, place, [late or not moved for late, (_, _, moved) in zip(common, self.steps, strict=True)])
        outputs = [ca.SX(n, 1) for n in (self.fn.numel_out(k) for k in range(self.fn.n_out()))]
        for out, element, v in self.results:
            outputs[out][element] = late[v]
        others = [s for k, s in enumerate(x) if k != self.wrt]
        first = ca.Function("first", x, [ca.vertcat(ca.SX(0, 1), *(early[v] for v in between))])
        return first, Straight.of("common", [z, *others], outputs)

    def _values(self, x: Sequence[ca.SX], known: dict[int, ca.SX], chosen: Sequence[bool]) -> dict[int, ca.SX]:
        """Evaluate the chosen instructions, besides values that are known."""
        found = dict(known)
        for v, ((op, reads, _), wanted) in enumerate(zip(self.steps, chosen, strict=True)):
            if not wanted or v in found:
                continue
            if op == ca.OP_INPUT:
                found[v] = x[reads[0]][reads[1]]
            elif op == ca.OP_CONST:
                found[v] = self.constants[v]
            elif len(reads) == 1:
                found[v] = ca.SX.unary(op, found[reads[0]])
            else:
                found[v] = ca.SX.binary(op, found[reads[0]], found[reads[1]])
        return found


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
            cost = best[start] + own * (stop - start + OWN_CODE)
            if cost < best[stop]:
                best[stop], cut[stop] = cost, start
    edges = [columns]
    while edges[-1]:
        edges.append(cut[edges[-1]])
    return [range(a, b) for a, b in pairwise(reversed(edges))]
