"""Conjugate gradients: A x = b over a field, with a symmetric positive definite operator A that is given as a program.

    r = b, p = z = r / diagonal;   alpha = r z / p A p;   x += alpha p;   r -= alpha A p;   beta = r' z' / r z;   p = z' + beta p

The loop ends when |r| <= tolerance |b|. An operator may return p A p, and a preconditioner (r r, r z), as a second result: then no
pass over the field is needed for them. Derivatives are those of the solution, by the implicit function theorem, and not those of
the iterations, of which nothing is kept:

    dx = A^-1 (db - dA x)          gradient of b: w = A^-1 seed, since A is symmetric; of what A depends on: -(dA/da x)^T w

So the derivative of a solve is a solve, to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from costate.core.fork import cached_property
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import zeros
from costate.kernel.ops.fields.access import Own, Shared
from costate.kernel.ops.fields.blocks import BLOCK, block_count
from costate.kernel.ops.fields.for_each import ForEach
from costate.kernel.ops.scan import Scan

STATUS = ("converged", "residual", "iterations")
"""Status of a linear solve: 1 if the tolerance was reached, else 0 or NaN; |b - A x| / |b|; number of iterations."""
FLOORS = (1e-15, 5e-7)
"""Smallest relative tolerances in float64 and float32: a few roundings."""


@dataclass(frozen=True)
class Space:
    """Fields of one kind: n numbers for each of `count` entities."""

    count: int
    n: int

    @property
    def size(self) -> int:
        """Number of elements of a field."""
        return block_count(self.count) * self.n

    def each(
        self, b: Builder, fn: Callable[..., Sequence[ca.SX]], own: Sequence[Var], shared: Sequence[Var], writes: str
    ) -> list[Var]:
        """Apply a function of an entity's numbers (n) and of shared ones. writes: "own" for a field or "total" for a sum, per
        result."""
        reads = [*(Own(self.count, self.n) for _ in own), *(Shared(v.size) for v in shared)]
        x = [ca.SX.sym(f"x{k}", r.width) for k, r in enumerate(reads)]
        y = fn(*x)
        kinds = [
            Own(self.count, self.n) if w == "own" else Shared(r.numel()) for w, r in zip(writes.split(), y, strict=True)
        ]
        op = ForEach(Straight.of("each", x, y), self.count, tuple(reads), tuple(kinds))
        return b.stage(op, *own, *shared)


def numbers(b: Builder, fn: Callable[..., ca.SX], *args: Var) -> Var:
    """Compute with a few numbers that all entities share."""
    x = [ca.SX.sym(f"x{k}", v.size) for k, v in enumerate(args)]
    return b.stage(Straight.of("numbers", x, [fn(*x)]), *args)[0]


def attainable(tolerance: ca.SX | float, square: ca.SX) -> ca.SX:
    """Return a relative tolerance, but no less than a few roundings. square: a positive number, which shows the number type."""
    single = ca.eq(square + square * 2.0**-30, square)
    return ca.fmax(tolerance, ca.if_else(single, FLOORS[1], FLOORS[0]))


def both(u: ca.SX, v: ca.SX) -> ca.SX:
    """Return 1 if both conditions hold, else 0."""
    return ca.if_else(ca.logic_and(u, v), 1, 0)


Preconditioner = bool | Program
"""Way of preconditioning residuals: False: none; True: by a diagonal; a program (r, *numbers) -> z, symmetric and positive
definite."""


def preconditioner_sizes(space: Space, precondition: Preconditioner) -> tuple[int, ...]:
    """Return the sizes of what a preconditioner takes beside the residual."""
    if isinstance(precondition, Program):
        return precondition.in_sizes[1:]
    return (space.size,) * precondition


def cg_loop(space: Space, apply: Program, precondition: Preconditioner, limit: int) -> Program:
    """Return the program (b, tolerance, [what preconditions], *args) -> x and (r r, b b, iterations, converged)."""
    b = Builder()
    rhs, tolerance = b.input(space.size), b.input(1)
    diagonal = [b.input(n) for n in preconditioner_sizes(space, precondition)]
    args = [b.input(n) for n in apply.in_sizes[1:]]
    if isinstance(precondition, Program):
        p, sums = _preconditioned(b, space, precondition, rhs, diagonal)
    else:

        def first(r: ca.SX, *d: ca.SX) -> tuple[ca.SX, ...]:
            z = _scaled(r, d)
            return z, ca.vertcat(ca.dot(r, r), ca.dot(r, z))

        p, sums = space.each(b, first, [rhs, *diagonal], [], "own total")
    allowed = numbers(b, lambda s, t: s[0] * attainable(t, s[0]) ** 2, sums, tolerance)
    state = numbers(b, lambda s: ca.vertcat(s, 1), sums)
    sizes = (allowed.size, *(v.size for v in diagonal), *apply.in_sizes[1:])
    loop = Scan(
        _iteration(space, apply, precondition),
        limit,
        4,
        0,
        (False,) * 4,
        until=_unfinished(space, sizes),
    )
    start = zeros(b, space.size)
    x, _, _, last, taken = b.stage(loop, start, rhs, p, state, allowed, *diagonal, *args)
    found = numbers(
        b,
        lambda s, s0, a, k: ca.vertcat(s[0], s0[0], k, ca.if_else(s[0] <= a, 1, 0)),
        *(last, sums, allowed, taken),
    )
    return b.finish(x, found)


def _preconditioned(b: Builder, space: Space, by: Program, r: Var, given: Sequence[Var]) -> tuple[Var, Var]:
    """Return z and (r r, r z)."""
    z, *told = b.inline(by, r, *given)
    (sums,) = told or space.each(b, lambda r, z: (ca.vertcat(ca.dot(r, r), ca.dot(r, z)),), [r, z], [], "total")
    return z, sums


def _scaled(r: ca.SX, diagonal: Sequence[ca.SX]) -> ca.SX:
    return r / diagonal[0] if diagonal else r


def _unfinished(space: Space, shared: Sequence[int]) -> Program:
    """Return the program that says whether to go on: residual above what is allowed, and no breakdown."""
    b = Builder()
    ins = [b.input(n) for n in (*(space.size,) * 3, 3, *shared)]
    return b.finish(numbers(b, lambda s, allowed: both(s[0] > allowed, s[2] > 0), ins[3], ins[4]))


def _iteration(space: Space, apply: Program, precondition: Preconditioner) -> Program:
    """Return the program of one iteration: (x, r, p, (r r, r z, ok), allowed, [what preconditions], *args) -> (x, r, p, (r r, r z,
    ok))."""
    b = Builder()
    x, r, p = (b.input(space.size) for _ in range(3))
    state = b.input(3)
    b.input(1)
    diagonal = [b.input(n) for n in preconditioner_sizes(space, precondition)]
    args = [b.input(n) for n in apply.in_sizes[1:]]
    Ap, *told = b.inline(apply, p, *args)
    (curvature,) = told or space.each(b, lambda p, Ap: (ca.dot(p, Ap),), [p, Ap], [], "total")
    step = numbers(b, lambda s, c: ca.if_else(c > 0, s[1] / c, 0), state, curvature)

    def move(x: ca.SX, r: ca.SX, p: ca.SX, Ap: ca.SX, *rest: ca.SX) -> tuple[ca.SX, ...]:
        *d, alpha = rest
        r = r - alpha * Ap
        return x + alpha * p, r, ca.vertcat(ca.dot(r, r), ca.dot(r, _scaled(r, d)))

    def turn(r: ca.SX, p: ca.SX, *rest: ca.SX) -> tuple[ca.SX]:
        return (_scaled(r, rest[:-1]) + rest[-1] * p,)

    if isinstance(precondition, Program):
        x, r = space.each(b, lambda *a: move(*a)[:2], [x, r, p, Ap], [step], "own own")
        z, sums = _preconditioned(b, space, precondition, r, diagonal)
        diagonal = []
    else:
        x, r, sums = space.each(b, move, [x, r, p, Ap, *diagonal], [step], "own own total")
        z = r
    ratio = numbers(b, lambda s, new: new[1] / s[1], state, sums)
    (p,) = space.each(b, turn, [z, p, *diagonal], [ratio], "own")
    new = numbers(b, lambda s, c: ca.vertcat(s, ca.if_else(c > 0, 1, 0)), sums, curvature)
    return b.finish(x, r, p, new)


@dataclass(frozen=True, eq=False)
class ConjugateGradients(Op):
    """inputs: b, [what preconditions], what the operator depends on; outputs: x, status (3)."""

    apply: Program
    """Operator (x, *args) -> A x, perhaps with x A x."""
    space: Space
    precondition: Preconditioner
    tolerance: float
    limit: int
    strict: bool = False
    """Return NaN unless the tolerance was reached: for derivatives, whose status nobody sees."""

    block = BLOCK

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.space.size, *preconditioner_sizes(self.space, self.precondition), *self.apply.in_sizes[1:])

    @property
    def first(self) -> int:
        """Number of the first input that the operator depends on."""
        return len(self.in_sizes) - len(self.apply.in_sizes) + 1

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.space.size, len(STATUS))

    def check(self) -> None:
        """Raise if the operator does not take and return the field."""
        n = self.space.size
        if self.apply.in_sizes[:1] != (n,) or self.apply.out_sizes[:1] != (n,):
            raise ValueError(
                f"an operator over a field of {n} elements takes vectors of sizes {self.apply.in_sizes} and returns "
                f"{self.apply.out_sizes}; expected it to take the field first, and to return one such field"
            )

    def describe(self) -> tuple[Any, ...]:
        by = self.precondition.key if isinstance(self.precondition, Program) else self.precondition
        return (self.apply.key, self.space, by, self.tolerance, self.limit, self.strict)

    def bodies(self) -> list[Program]:
        return [self.body]

    @cached_property
    def product(self) -> Program:
        """Operator without a second result."""
        return replace(self.apply, outputs=self.apply.outputs[:1])

    @cached_property
    def body(self) -> Program:
        """Program that runs: the loop, and the residual of what it found."""
        b = Builder()
        rhs, *rest = (b.input(n) for n in self.in_sizes)
        tolerance = numbers(b, lambda: ca.SX(self.tolerance))
        x, found = b.inline(cg_loop(self.space, self.apply, self.precondition, self.limit), rhs, tolerance, *rest)
        if self.strict:
            (x,) = self.space.each(b, lambda x, s: (x * ca.if_else(s[3], 1, math.nan),), [x], [found], "own")
        (Ax,) = b.inline(self.product, x, *rest[self.first - 1 :])
        (rr,) = self.space.each(b, lambda u, v: (ca.sumsqr(u - v),), [rhs, Ax], [], "total")
        status = numbers(
            b, lambda s, rr: ca.vertcat(s[3], ca.if_else(s[1] == 0, 0, ca.sqrt(rr / s[1])), s[2]), found, rr
        )
        return b.finish(x, status)

    def evaluate(self, *inputs: Array) -> list[Array]:
        return self.body.evaluate(*inputs)

    def _solve(self, b: Builder, rhs: Var, ins: Sequence[Var]) -> Var:
        """Solve for another right-hand side."""
        return b.stage(replace(self, strict=True), rhs, *ins[1:])[0]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        outs = b.stage(self, *ins)
        first = self.first
        moving = [k for k in range(first, len(ins)) if tans[k] is not None]
        rhs = tans[0]
        if moving:
            wrt = [1 + k - first for k in moving]
            (pushed,) = b.inline(jvp(self.product, wrt), outs[0], *ins[first:], *(t for t in tans[first:] if t))
            rhs = minus(b, self.space, rhs, pushed)
        return outs, [None if rhs is None else self._solve(b, rhs, ins), None]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        grads: list[Var | None] = [None] * len(ins)
        if seeds[0] is None:
            return grads
        first = self.first
        w = self._solve(b, seeds[0], ins)
        wanted = [k for k in range(first, len(ins)) if wrt[k]]
        if wanted:
            back = vjp(self.product, [1 + k - first for k in wanted], [0])
            seed = minus(b, self.space, None, w)
            for k, g in zip(wanted, b.inline(back, outs[0], *ins[first:], seed), strict=True):
                grads[k] = g
        grads[0] = w
        return grads


def minus(b: Builder, space: Space, u: Var | None, v: Var) -> Var:
    """Return u - v, or -v."""
    return space.each(b, lambda *x: (x[0] - x[1] if u else -x[0],), [u, v] if u else [v], [], "own")[0]
