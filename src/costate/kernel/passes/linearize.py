"""Linearisation: a program split into what depends on its inputs alone, run once, and a linear rest, run for every tangent.

    forward:  inputs -> outputs, coefficients          linear:  tangents, some inputs, coefficients -> tangents of outputs

Forward mode would run everything again for each column of a Jacobian. A tangent, however, is linear in the tangents before it, and
its coefficients are the same for all columns. So each stage is split in two:

- Straight-line code: CasADi takes out of the tangents everything that does not depend on a tangent. These coefficients are one more
  output of the forward part and an input of the linear part.
- A scan: the body is split first. The forward scan stacks the coefficients of its steps as a sequence, and the linear scan reads
  them. If it has few results and there are many columns, its matrix is found once, by its adjoint, and multiplied instead.
- A stage with a tangent of its own: that program is linear already, and is split likewise.
- A branch: both programs are split, and the linear part takes the same one.
- All others are differentiated forward in the linear part, with the values they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import casadi as ca

from costate.kernel.ir.derive import vjp
from costate.kernel.ir.program import Builder, Op, Program, Var
from costate.kernel.ir.prune import prune
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import is_zero, zeros
from costate.kernel.ops.cond import Cond
from costate.kernel.ops.custom import Custom
from costate.kernel.ops.scan import Scan
from costate.kernel.passes.optimize import optimize

MANY = 2
"""A scan becomes a matrix where there are this many times more columns than it has results."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Both parts of a program."""

    forward: Program
    """Inputs of the program -> its outputs, then coefficients."""
    linear: Program
    """Tangents (of wrt), inputs of the program (of needs), coefficients -> tangents of all outputs."""
    needs: tuple[int, ...]
    """Inputs of the program that the linear part reads."""


def linearized(program: Program, wrt: Sequence[int], columns: int = 1) -> Linear:
    """Split a program for tangents of the inputs in wrt, of which there will be so many."""
    split = _Split(columns)
    values = {v: split.forward.input(v.size) for v in program.inputs}
    tangents: dict[Var, Var | None] = {program.inputs[k]: split.linear.input(program.in_sizes[k]) for k in wrt}
    for s in program.stages:
        ins, tans = [values[v] for v in s.inputs], [tangents.get(v) for v in s.inputs]
        if any(tans):
            outs, out_tans = split.stage(s.op, ins, tans)
        else:
            outs, out_tans = split.forward.stage(s.op, *ins), [None] * len(s.outputs)
        values.update(zip(s.outputs, outs, strict=True))
        tangents.update(zip(s.outputs, out_tans, strict=True))
    dots = [tangents.get(v) or zeros(split.linear, v.size) for v in program.outputs]
    linear = prune(split.linear.finish(*dots))
    read = {v for s in linear.stages for v in s.inputs} | set(linear.outputs)
    used = {value: v for value, v in split.given.items() if v in read}
    ins = split.forward.inputs
    needs = [k for k, v in enumerate(ins) if v in used]
    left = [v for v in used if v not in set(ins)]
    order = [*linear.inputs[: len(wrt)], *(used[ins[k]] for k in needs), *(used[v] for v in left)]
    forward = prune(split.forward.finish(*(values[v] for v in program.outputs), *left))
    return Linear(forward, replace(linear, inputs=tuple(order)), tuple(needs))


@dataclass(eq=False)
class _Split:
    """Both parts while they are built."""

    columns: int
    forward: Builder = field(default_factory=Builder)
    linear: Builder = field(default_factory=Builder)
    given: dict[Var, Var] = field(default_factory=dict)
    """Values of the forward part that the linear one reads -> what they are there."""

    def of(self, value: Var) -> Var:
        """Return what a value of the forward part is in the linear part."""
        if value not in self.given:
            self.given[value] = self.linear.input(value.size)
        return self.given[value]

    def stage(self, op: Op, ins: list[Var], tans: list[Var | None]) -> tuple[list[Var], list[Var | None]]:
        """Add a stage to both parts; return its values and their tangents."""
        if isinstance(op, Straight):
            return self._straight(op, ins, tans)
        if isinstance(op, Scan) and not op.counted and op.until is None:
            return self._scan(op, ins, tans)
        if isinstance(op, Custom) and op.tangent is not None:
            return self._custom(op, op.tangent, ins, tans)
        if isinstance(op, Cond) and any(tans[1:]):
            return self._cond(op, ins, tans)
        # All others: forward mode, with what it needs of the values.
        _, found = op.jvp(self.linear, [self.of(v) for v in ins], tans)
        return self.forward.stage(op, *ins), found

    def _straight(self, op: Straight, ins: list[Var], tans: list[Var | None]) -> tuple[list[Var], list[Var | None]]:
        x = op.symbols()
        y = op.call(x)
        active = [k for k, t in enumerate(tans) if t is not None]
        dx = [ca.SX.sym(f"d{k}", op.in_sizes[k]) for k in active]
        dy = ca.jtimes(ca.vertcat(*y), ca.vertcat(*(x[k] for k in active)), ca.vertcat(*dx))
        # Equal coefficients must be one symbol: else what they are multiplied with could not be found to be equal.
        rest, symbols, found = ca.extract_parametric(ca.cse(dy), ca.vertcat(*x))
        names = {str(e) for e in ca.symvar(rest)}
        read = [k for k, s in enumerate(x) if any(str(e) in names for e in ca.symvar(s))]
        p = ca.vertcat(ca.SX(0, 1), *symbols)
        *outs, coefficients = self.forward.stage(Straight.of("forward", x, [*y, ca.vertcat(ca.SX(0, 1), *found)]), *ins)
        arguments = [*dx, *(x[k] for k in read), *([p] if symbols else [])]
        left = [self.of(ins[k]) for k in read] + ([self.of(coefficients)] if symbols else [])
        dots = ca.vertsplit(rest, [0, *_ends(op.out_sizes)])
        pushed = self.linear.stage(Straight.of("linear", arguments, dots), *(t for t in tans if t is not None), *left)
        return outs, [v if d.nnz() else None for v, d in zip(pushed, dots, strict=True)]

    def _custom(
        self, op: Custom, tangent: Program, ins: list[Var], tans: list[Var | None]
    ) -> tuple[list[Var], list[Var | None]]:
        """Split the tangent program, which is linear in the tangents: what does not depend on them is run once."""
        outs = self.forward.stage(op, *ins)
        n = len(ins) + len(outs)
        split = linearized(tangent, range(n, n + len(ins)), self.columns)
        values = [*ins, *outs, *(zeros(self.forward, v.size) for v in ins)]
        found = self.forward.inline(split.forward, *values)[len(outs) :]
        dots = [t or zeros(self.linear, v.size) for t, v in zip(tans, ins, strict=True)]
        left = [*(self.of(values[k]) for k in split.needs), *map(self.of, found)]
        found = self.linear.inline(split.linear, *dots, *left)
        none = {v for s in split.linear.stages if is_zero(s.op) for v in s.outputs}
        return outs, [None if v in none else d for v, d in zip(split.linear.outputs, found, strict=True)]

    def _cond(self, op: Cond, ins: list[Var], tans: list[Var | None]) -> tuple[list[Var], list[Var | None]]:
        """Split both branches: the forward one gives its own coefficients, and zeros for those of the other one."""
        moving = [k for k, t in enumerate(tans[1:]) if t is not None]
        splits = [linearized(p, moving, self.columns) for p in (op.then, op.otherwise)]
        n, sizes = len(op.out_sizes), op.in_sizes[1:]
        kept = [split.forward.out_sizes[n:] for split in splits]
        forward, linear = [], []
        for own, split in enumerate(splits):
            b = Builder()
            found = b.inline(split.forward, *(b.input(m) for m in sizes))
            none = [zeros(b, m) for m in kept[1 - own]]
            forward.append(optimize(b.finish(*found[:n], *(none + found[n:] if own else found[n:] + none))))
            b = Builder()
            dots = [b.input(sizes[k]) for k in moving]
            values = [b.input(m) for m in sizes]
            coefficients = [[b.input(m) for m in part] for part in kept]
            needed = (values[k] for k in split.needs)
            linear.append(optimize(b.finish(*b.inline(split.linear, *dots, *needed, *coefficients[own]))))
        found = self.forward.stage(Cond(*forward), *ins)
        given = [self.of(ins[0]), *(t for t in tans[1:] if t is not None), *map(self.of, (*ins[1:], *found[n:]))]
        return found[:n], list(self.linear.stage(Cond(*linear), *given))

    def _scan(self, op: Scan, ins: list[Var], tans: list[Var | None]) -> tuple[list[Var], list[Var | None]]:
        c, s, n_out = op.n_carry, op.n_carry + op.n_sequences, len(op.body.outputs)
        moving = [k for k in range(len(op.body.inputs)) if k < c or tans[k] is not None]
        body = linearized(op.body, moving)
        kept = tuple(keep or k in body.needs for k, keep in enumerate(op.keep))
        forward = replace(op, body=body.forward, keep=kept)
        finals, results, states = forward.split_out(self.forward.stage(forward, *ins))
        own, left = results[: n_out - c], results[n_out - c :]
        state_of = dict(zip([k for k in range(c) if kept[k]], states, strict=True))

        # Inputs of the linear body, sorted as those of a scan: tangents of carries; rows; what all steps share.
        n = len(moving)
        there = dict(zip(moving, body.linear.inputs, strict=False))
        needed = dict(zip(body.needs, body.linear.inputs[n:], strict=False))
        places: list[tuple[Var, Var]] = [(there[k], tans[k] or zeros(self.linear, ins[k].size)) for k in range(c)]
        moved = {k: t for k, t in enumerate(tans) if t is not None}
        rows = [(there[k], moved[k]) for k in moving if c <= k < s]
        rows += [(needed[k], self.of(op.state_rows(self.forward, state_of[k]))) for k in needed if k < c]
        rows += [(needed[k], self.of(ins[k])) for k in needed if c <= k < s]
        rows += list(zip(body.linear.inputs[n + len(needed) :], map(self.of, left), strict=True))
        shared = [(there[k], moved[k]) for k in moving if k >= s] + [
            (needed[k], self.of(ins[k])) for k in needed if k >= s
        ]
        order = places + rows + shared
        linear = replace(
            op, body=replace(body.linear, inputs=tuple(inner for inner, _ in order)), n_sequences=len(rows)
        )
        outs = [*finals, *own, *(state_of[k] for k in range(c) if op.keep[k])]
        arguments = [outer for _, outer in order]
        known = set(self.given.values())
        tangents = [k for k, v in enumerate(arguments) if v not in known]
        if c == len(linear.out_sizes) == 1 and MANY * sum(linear.out_sizes) <= self.columns:
            pushed = [self._matrix(linear, arguments, tangents)]
        else:
            pushed = self.linear.stage(linear, *arguments)
        return outs, list(pushed)

    def _matrix(self, op: Scan, arguments: list[Var], tangents: list[int]) -> Var:
        """Write a linear scan with a short result as a product with its matrix: rows found once, by the reversed scan, are
        cheaper than the scan for many columns."""
        value_of = {there: value for value, there in self.given.items()}
        b = Builder()
        ins = [b.input(v.size) for v in arguments]
        back = vjp(b.finish(*b.stage(op, *ins)), tangents, [0])
        reads = back.depends_on([True] * len(tangents))
        kept = [k for k in range(len(arguments)) if reads[k] and k not in tangents]
        assert not any(reads[k] for k in tangents)  # it is linear
        body = replace(back, inputs=(back.inputs[-1], *(back.inputs[k] for k in kept)))
        (size,) = op.out_sizes
        basis = self.forward.stage(Straight.of("basis", [], [ca.vec(ca.SX(ca.DM.eye(size)))]))[0]
        rows = self.forward.stage(Scan(body, size, 0, 1, ()), basis, *(value_of[arguments[k]] for k in kept))
        matrices = [ca.SX.sym(f"m{k}", v.size) for k, v in enumerate(rows)]
        moved = [ca.SX.sym(f"t{k}", arguments[i].size) for k, i in enumerate(tangents)]
        total = sum(
            (ca.reshape(m, t.numel(), size).T @ t for m, t in zip(matrices, moved, strict=True)), ca.SX(size, 1)
        )
        product = Straight.of("product", [*matrices, *moved], [total])
        return self.linear.stage(product, *map(self.of, rows), *(arguments[k] for k in tangents))[0]


def _ends(sizes: Sequence[int]) -> list[int]:
    return [sum(sizes[: k + 1]) for k in range(len(sizes))]
