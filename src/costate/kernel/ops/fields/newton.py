"""Newton's method: R(y) = 0 over a field, for a residual whose Jacobian is symmetric and positive definite.

Such a residual is the gradient of a convex energy. A step d solves J d = R by conjugate gradients, as accurately as the step
deserves (Eisenstat and Walker, SIAM J. Sci. Comput. 17, 1996). Along it the slope of the energy, -d R(y - t d), grows with t: where
a full step has gone too far, because R has become steep on the way (latent heat), the length at which the slope is 0 is searched
between two that enclose it, until the slope is a tenth of what it was at first. The norm of R may grow on the way; the energy does
not. (Without this, a step of heat whose nodes melt within 50 K goes back and forth between solid and liquid for ever.)

Derivatives are those of the solution: J dy = -(dR/da) da, and its adjoint. They are solves by conjugate gradients (`krylov.py`).

Where the energy is not convex, or a product with J is long to compute from scratch, a `Matrix` says how: numbers are computed once
per step, some of them once per solve, and products made of them. Far from the solution a solve begins with a positive definite
matrix near J, and goes on to J in steps of PART. Where conjugate gradients meet a direction of negative curvature, a step tries
matrices between J and the one near it. Linear solves are as accurate as R is linear along the step (the first choice of Eisenstat
and Walker). Derivatives are solves with J.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from costate.core.fork import cached_property
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Array, Builder, Op, Program, Var
from costate.kernel.ir.vector_ops import zeros
from costate.kernel.ops.fields.blocks import BLOCK
from costate.kernel.ops.fields.krylov import ConjugateGradients, Space, attainable, both, cg_loop, minus, numbers
from costate.kernel.ops.finite import Finite
from costate.kernel.ops.scan import Scan

STATUS = ("converged", "residual", "iterations", "steps")
"""Status of a solve: 1 if it converged, else 0 or NaN; |R| / |R at the start|; all iterations of conjugate gradients;
steps."""
SLOPE = 0.1
"""Largest slope of the energy at the end of a shortened step, relative to the one at its beginning."""
TRIALS = 40
"""Largest number of lengths of a step that are tried."""
INSIDE = (0.1, 0.9)
"""Bounds of the next length to try, between the two that enclose it."""
FORCING = (0.01, 0.1)
"""Relative tolerances of the linear solves: of the first, and the largest. With a matrix: the least unless the end is near, and
that of the first and the largest."""
PART = 0.35
"""Part of the way between J and the matrix near it that an attempt goes."""
SMALL = 16.0
"""Size of a step, in smallest tolerances times |y|, that cannot be told from rounding: the solve has then converged, too."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Jacobian of a residual by numbers that are computed once for many products."""

    prepare: Program
    """Program (y, *args) -> numbers that all steps of a solve share; y: where it starts."""
    assemble: Program
    """Program (a, y, *shared numbers, *args) -> numbers of N + a (J - N), with a positive definite matrix N near J; a: (1)."""
    whole: Program
    """Program (y, *args) -> shared numbers and numbers of J, for derivatives."""
    apply: Program
    """Program (v, *shared numbers, *numbers) -> product with v, perhaps with v times it."""
    precondition: Program
    """Program (r, *shared numbers, *numbers) -> z, about J^-1 r, symmetric and positive definite, perhaps with (r r, r z)."""
    scale: Program | None = None
    """Program (y, *args) -> square that |R|^2 is compared with (1); None: that at the start."""
    room: Program | None = None
    """Program (y, d, *args) -> (t, e): the largest length t, up to 1, of a step y - t d, and 1 if the solve ends after it."""

    @property
    def key(self) -> tuple[str, ...]:
        """Digests of the programs."""
        parts = self.prepare, self.assemble, self.whole, self.apply, self.precondition, self.scale, self.room
        return tuple(p.key if p else "" for p in parts)


@dataclass(frozen=True, eq=False)
class Newton(Op):
    """inputs: start, what the residual depends on; outputs: y, status (4)."""

    residual: Program
    """Program (y, *args) -> R."""
    diagonal: Program | None
    """Program (y, *args) -> diagonal of the Jacobian, or something like it."""
    space: Space
    tolerance: float
    steps: int
    limit: int
    """Largest number of iterations of each linear solve."""
    matrix: Matrix | None = None
    """Programs of products with the Jacobian; None: the derivative of the residual."""

    block = BLOCK

    @property
    def room(self) -> Program | None:
        """Program that limits the length of steps."""
        return self.matrix.room if self.matrix else None

    @property
    def in_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.residual.in_sizes

    @property
    def out_sizes(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.space.size, len(STATUS))

    def check(self) -> None:
        """Raise if the residual or the diagonal does not take and return the field."""
        n = self.space.size
        for name, p in (("residual", self.residual), ("diagonal", self.diagonal)):
            if p and (p.in_sizes[:1] != (n,) or p.in_sizes != self.in_sizes or p.out_sizes != (n,)):
                raise ValueError(
                    f"the {name} takes vectors of sizes {p.in_sizes} and returns {p.out_sizes}; expected it to take the field "
                    f"({n} elements), then the arguments of the residual, and to return one such field"
                )

    def describe(self) -> tuple[Any, ...]:
        more = tuple(p.key if p else "" for p in (self.diagonal, self.matrix))
        return (self.residual.key, *more, self.space, self.tolerance, self.steps, self.limit)

    def bodies(self) -> list[Program]:
        return [self.body]

    def evaluate(self, *inputs: Array) -> list[Array]:
        return self.body.evaluate(*inputs)

    @cached_property
    def jacobian(self) -> Program:
        """Program (v, y, *args) -> J v."""
        pushed = jvp(self.residual, [0])
        return replace(pushed, inputs=(pushed.inputs[-1], *pushed.inputs[:-1]))

    # --- the loop -------------------------------------------------------------------------------------------------

    @cached_property
    def body(self) -> Program:
        """Program that runs."""
        b = Builder()
        y, *args = (b.input(n) for n in self.in_sizes)
        (R,) = b.inline(self.residual, y, *args)
        (square,) = self.space.each(b, lambda R: (ca.sumsqr(R),), [R], [], "total")
        given = self.matrix.scale if self.matrix else None
        scale = square if given is None else b.inline(given, y, *args)[0]
        allowed = numbers(b, lambda s: s * attainable(self.tolerance, s) ** 2, scale)

        # |R|^2, tolerance of the linear solve, iterations so far, going on, share of J to try
        def begin(s, s0, a):
            share = ca.if_else(s > s0, 0, 1) if given else 1
            return ca.vertcat(s, FORCING[1 if self.matrix else 0], 0, ca.if_else(s > (a if given else 0), 1, 0), share)

        state = numbers(b, begin, square, scale, allowed)
        shared = self._prepared(b, state, y, args) if self.matrix else []
        loop = Scan(self._step(), self.steps, 3, 0, (False,) * 3, until=self._unfinished())
        y, R, last, taken = b.stage(loop, y, R, state, allowed, *shared, *args)
        status = numbers(
            b,
            lambda s, s0, k: ca.vertcat(
                ca.if_else(both(s[3] == 0, s[0] >= 0), 1, 0), ca.if_else(s0 == 0, 0, ca.sqrt(s[0] / s0)), s[2], k
            ),
            *(last, scale, taken),
        )
        return b.finish(y, status)

    def _prepared(self, b: Builder, state: Var, y: Var, args: Sequence[Var]) -> list[Var]:
        """Return what all steps share of the matrix; zeros if there is none to take."""
        assert self.matrix
        sizes = self.matrix.prepare.out_sizes
        once, until = Builder(), Builder()
        for c in (once, until):
            ins = [c.input(n) for n in (*sizes, 5, *self.in_sizes)]
        body = once.finish(*once.inline(self.matrix.prepare, *once.inputs[len(sizes) + 1 :]))
        going = until.finish(numbers(until, lambda s: ca.if_else(s[3] > 0, 1, 0), ins[len(sizes)]))
        loop = Scan(body, 1, len(sizes), 0, (False,) * len(sizes), until=going)
        return b.stage(loop, *(zeros(b, n) for n in sizes), state, y, *args)[: len(sizes)]

    @property
    def _shared(self) -> tuple[int, ...]:
        """Sizes of what all steps share: numbers of the matrix, and arguments."""
        return (*(self.matrix.prepare.out_sizes if self.matrix else ()), *self.in_sizes[1:])

    def _unfinished(self) -> Program:
        b = Builder()
        ins = [b.input(n) for n in (self.space.size, self.space.size, 5, 1, *self._shared)]
        return b.finish(numbers(b, lambda s: ca.if_else(s[3] > 0, 1, 0), ins[2]))

    def _step(self) -> Program:
        """Return the program of a step: (y, R, state, allowed, *args) -> (y, R, state)."""
        b, space = Builder(), self.space
        y, R, state, allowed = (b.input(n) for n in (space.size, space.size, 5, 1))
        shared = [b.input(n) for n in self._shared]
        args = shared[len(shared) - len(self.in_sizes) + 1 :]
        d, found = self._direction(b, y, R, state, shared)
        (sums,) = space.each(
            b, lambda d, R, y: (ca.vertcat(ca.dot(d, R), ca.sumsqr(d), ca.sumsqr(y)),), [d, R, y], [], "total"
        )
        if self.room:
            (room,) = b.inline(self.room, y, d, *args)
            sums = numbers(b, ca.vertcat, sums, room)
        most = 3 if self.room else None
        begin = numbers(b, lambda s: ca.vertcat(1 if most is None else s[most], 0, 0, 0, -s[0], 2, 0), sums)
        search = Scan(self._trial(), TRIALS, 3, 0, (False,) * 3, until=self._too_far())
        y, R, tried, _ = b.stage(search, y, R, begin, y, d, sums, *args)

        def judge(s: ca.SX, found: ca.SX, sums: ca.SX, tried: ca.SX, allowed: ca.SX) -> ca.SX:
            small = sums[1] <= (SMALL * attainable(0, s[0])) ** 2 * sums[2]
            done = ca.logic_or(both(tried[2] <= allowed, tried[2] >= 0), small)
            lost = ca.logic_not(both(tried[1] > 0, sums[0] > 0))
            wanted = 0.9 * tried[2] / s[0]
            if self.matrix:  # how much R differs from what the linear solve left of it
                wanted = ca.fmax(ca.fabs(ca.sqrt(tried[2]) - ca.sqrt(found[0])) / ca.sqrt(s[0]), FORCING[0])
            wanted = ca.fmax(wanted, 0.5 * ca.sqrt(allowed / tried[2]))
            if self.room:
                lost = ca.logic_or(lost, sums[4] > 0)
            going = ca.if_else(done, 0, ca.if_else(lost, -1, 1))
            return ca.vertcat(tried[2], ca.fmin(FORCING[1], wanted), s[2] + found[2], going, found[4])

        return b.finish(y, R, numbers(b, judge, state, found, sums, tried, allowed))

    def _direction(self, b: Builder, y: Var, R: Var, state: Var, shared: Sequence[Var]) -> tuple[Var, Var]:
        """Return the step d, and about its solve: (r r, b b, iterations, converged, share of J to try in the next step)."""
        if self.matrix:
            trying = numbers(b, lambda s: ca.vertcat(0, 0, 0, 0, s[4]), state)
            attempts = Scan(self._attempt(), 2 + int(1 / PART), 2, 0, (False,) * 2, until=self._failed())
            d, found, _ = b.stage(attempts, R, trying, R, state, y, *shared)
            return d, numbers(b, lambda f: ca.vertcat(f[:4], ca.fmin(1, f[4] + PART)), found)
        forcing = numbers(b, lambda s: s[1], state)
        diagonal = b.inline(self.diagonal, y, *shared) if self.diagonal else []
        linear = cg_loop(self.space, self.jacobian, bool(diagonal), self.limit)
        d, found = b.inline(linear, R, forcing, *diagonal, y, *shared)
        return d, numbers(b, lambda f: ca.vertcat(f, 1), found)

    def _attempt(self) -> Program:
        """Return the program of a linear solve: (d, found; R, state, y, *shared) -> (d, found)."""
        assert self.matrix
        b, space = Builder(), self.space
        _, before, R, state, y = (b.input(n) for n in (space.size, 5, space.size, 5, space.size))
        shared = [b.input(n) for n in self._shared]
        known = shared[: len(self.matrix.prepare.out_sizes)]
        entries = [*known, *b.inline(self.matrix.assemble, numbers(b, lambda f: f[4], before), y, *shared)]
        linear = cg_loop(space, self.matrix.apply, self.matrix.precondition, self.limit)
        d, found = b.inline(linear, R, numbers(b, lambda s: s[1], state), *entries, *entries)

        def judge(f: ca.SX, before: ca.SX) -> ca.SX:
            share = before[4]
            good = ca.logic_or(f[3] > 0, share <= 0)
            lower = ca.if_else(share > PART, share - PART, 0)
            return ca.vertcat(f[:2], f[2] + before[2], ca.if_else(good, 1, 0), ca.if_else(good, share, lower))

        return b.finish(d, numbers(b, judge, found, before))

    def _failed(self) -> Program:
        b = Builder()
        ins = [b.input(n) for n in (self.space.size, 5, self.space.size, 5, self.space.size, *self._shared)]
        return b.finish(numbers(b, lambda f: ca.if_else(f[3] > 0, 0, 1), ins[1]))

    @property
    def _sums(self) -> int:
        """Number of d R, d d, y y, and what `room` returns."""
        return 5 if self.room else 3

    def _too_far(self) -> Program:
        b = Builder()
        n = self.space.size
        ins = [b.input(k) for k in (n, n, 7, n, n, self._sums, *self.in_sizes[1:])]
        return b.finish(numbers(b, lambda t: ca.if_else(t[1] > 0, 0, 1), ins[2]))

    def _trial(self) -> Program:
        """Return the program that tries a length of the step: (y', R', search, y, d, sums, *args) -> (y', R', search).

        The state of the search: length t to try, accepted, |R'|^2, then lower end and slope there, upper end and slope there.
        """
        b, space = Builder(), self.space
        b.input(space.size)
        b.input(space.size)
        t, y, d, sums = (b.input(n) for n in (7, space.size, space.size, self._sums))
        args = [b.input(n) for n in self.in_sizes[1:]]
        (new,) = space.each(b, lambda y, d, t: (y - t[0] * d,), [y, d], [t], "own")
        (R,) = b.inline(self.residual, new, *args)
        (found,) = space.each(b, lambda d, R: (ca.vertcat(-ca.dot(d, R), ca.sumsqr(R)),), [d, R], [], "total")
        (finite,) = b.stage(Finite((2,)), numbers(b, lambda: ca.SX(1)), found)
        found = numbers(b, lambda f, x, s: ca.if_else(f, x, ca.vertcat(1e3 * s[0], -1)), finite, found, sums)
        return b.finish(new, R, numbers(b, _judged, t, sums, found))

    # --- derivatives ----------------------------------------------------------------------------------------------

    def _solve(self, b: Builder, rhs: Var, y: Var, args: Sequence[Var]) -> Var:
        """Solve J v = rhs at the solution."""
        if self.matrix:
            found = b.inline(self.matrix.whole, y, *args)
            how = self.matrix.apply, self.space, self.matrix.precondition
            op = ConjugateGradients(*how, self.tolerance, self.limit, strict=True)
            return b.stage(op, rhs, *found, *found)[0]
        diagonal = b.inline(self.diagonal, y, *args) if self.diagonal else []
        op = ConjugateGradients(self.jacobian, self.space, bool(diagonal), self.tolerance, self.limit, strict=True)
        return b.stage(op, rhs, *diagonal, y, *args)[0]

    def jvp(self, b: Builder, ins: Sequence[Var], tans: Sequence[Var | None]) -> tuple[list[Var], list[Var | None]]:
        outs = b.stage(self, *ins)
        moving = [k for k in range(1, len(ins)) if tans[k] is not None]
        if not moving:
            return outs, [None, None]
        (pushed,) = b.inline(jvp(self.residual, moving), outs[0], *ins[1:], *(t for t in tans[1:] if t))
        return outs, [self._solve(b, minus(b, self.space, None, pushed), outs[0], ins[1:]), None]

    def vjp(self, b, ins, outs, kept, seeds, wrt) -> list[Var | None]:
        grads: list[Var | None] = [None] * len(ins)
        wanted = [k for k in range(1, len(ins)) if wrt[k]]
        if seeds[0] is None or not wanted:
            return grads
        w = self._solve(b, minus(b, self.space, None, seeds[0]), outs[0], ins[1:])
        back = vjp(self.residual, wanted, [0])
        for k, g in zip(wanted, b.inline(back, outs[0], *ins[1:], w), strict=True):
            grads[k] = g
        return grads


def _judged(search: ca.SX, sums: ca.SX, found: ca.SX) -> ca.SX:
    """Return the state of the search after a trial. sums: d R at the beginning of the step first, and the largest length fourth
    (or 1); found: slope and |R'|^2, which is negative where the residual is not finite."""
    t, _, _, low, slope_low, high, slope_high = ca.vertsplit(search)
    slope = found[0]
    near = ca.fabs(slope) <= SLOPE * sums[0]
    whole = ca.logic_and(t == (sums[3] if sums.numel() > 3 else 1), slope <= 0)
    good = both(ca.logic_or(near, whole), found[1] >= 0)
    before = both(slope <= 0, found[1] >= 0)  # else too far, or not finite
    low, slope_low = ca.if_else(before, t, low), ca.if_else(before, slope, slope_low)
    high, slope_high = ca.if_else(before, high, t), ca.if_else(before, slope_high, slope)
    secant = slope_low / (slope_low - slope_high)  # where the slope would be 0 if it grew evenly
    part = ca.if_else(secant > INSIDE[0], ca.fmin(secant, INSIDE[1]), INSIDE[0])
    return ca.vertcat(low + part * (high - low), good, found[1], low, slope_low, high, slope_high)
