"""Newton's method for the accelerations of soft constraints.

    minimise over a:   a' M a / 2 - f' a + sum of costs of (J a - aref)

The cost is convex and its second derivative exists almost everywhere; the Hessian M + J' C J keeps the zeros of the tree between
branches that nothing connects. An iteration is straight functions for the direction, a loop for the step along it, and the step.
Contacts come in groups; a group none of whose contacts acts in any lane is skipped. A lane is done when a step met the minimum of
the quadratic it was made for, or when the decrease it promised was negligible. Derivatives of the solution solve one system with
the Hessian found there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.tracing import Later, body_program
from costate.physics.algebra.ltl import Factor, factor
from costate.sim.contact.newton.problem import Group, Problem, nonzeros

LINE_TOLERANCE = 0.1
"""Slope at which a line search stops, relative to the slope at its start."""
EXACT = 1e-13
"""Relative accuracy to which the slope after a full step, and its change, must be those of one quadratic for the step to be
exact."""
REACHED = 70.0
"""Least tolerance that can be reached, by the square of the spacing of numbers: 1e-12 in float32."""
FAR = 1e10
"""Upper end of a line search that has not found one."""


@dataclass(frozen=True, eq=False)
class Solver:
    """The programs that solve the problems of one kind."""

    problem: Problem
    iterations: int
    tolerance: float
    line_search: int

    def solve(self, b: ProgramBuilder, data: Sequence[Var]) -> Var:
        """Add the accelerations."""
        tangent, adjoint = derivatives(self.problem)
        return b.custom(self.program(), *data, tangent=Later(lambda: tangent), adjoint=Later(lambda: adjoint))[0]

    def near(self, b: ProgramBuilder, start: Var, data: Sequence[Var]) -> Var:
        """Add the accelerations, found from those of a problem much like it."""
        n, (tangent, adjoint) = len(data), derivatives(self.problem)
        return b.custom(
            self.program(near=True), *data, start,
            tangent=Later(lambda: lambda *given: tangent(*given[:n], given[n + 1], *given[n + 2 : -1])),
            adjoint=Later(lambda: lambda *given: [*adjoint(*given[:n], *given[n + 1 :]), SX.zeros(start.size)]),
        )[0]  # fmt: skip

    def program(self, near: bool = False) -> Program:
        """Build (flat data) -> a; or (flat data, a to start from) -> a."""
        p = self.problem
        b = ProgramBuilder("newton")
        data = b.inputs(*p.sizes)
        m, f, _, weights, _, _ = data
        flags, free = b.trace(self._flags, weights), b.trace(p.free, m, f)
        a = b.inputs(p.nv)[0] if near else free
        first = [self._per_group(b, g, flags, self._deviation, self._parts(b, data, g, "jdtm", a)) for g in p.groups]
        x = b.concat(*(part[0] for part in first))
        costs = b.concat(*(part[1] for part in first))
        least, busy = b.trace(self._scale, f, free, costs, b.epsilon())
        busy = b.constant([1.0]) if near else busy
        shared = [least, flags, *data]
        (a, _, _), _ = b.while_loop(_going, self._iteration(), self.iterations, [a, x, busy], shared)
        return b.program(a)

    # --- groups ---------------------------------------------------------------------------------------------------

    def _flags(self, D: SX) -> SX:
        """Return the flags of the groups: 1 where anything of a group acts."""
        return ca.vertcat(*(reduce(ca.fmax, ca.vertsplit(D[g.span]), SX(0)) > 0 for g in self.problem.groups))

    def _per_group(self, b: ProgramBuilder, g: Group, flags: Var, fn: Callable[..., Any], args: list[Var]) -> list[Var]:
        """Add fn(g, args), or zeros where nothing of the group acts."""
        body = body_program(lambda *given: fn(g, *given), [v.size for v in args])
        if g.always:
            return b.call(body, *args)
        return b.cond(b.slice(flags, g.index, 1), body, lambda *_: [SX.zeros(n) for n in body.out_sizes], *args)

    def _parts(self, b: ProgramBuilder, data: list[Var], g: Group, which: str, *more: Var) -> list[Var]:
        """Return a group's part of the data (j: Jacobian, d: weights, t: targets, m: friction coefficients), then more."""
        _, _, j, d, t, mu = data
        parts = {
            "j": lambda: b.slice(j, g.nz.start, g.nz.stop - g.nz.start),
            "d": lambda: b.slice(d, g.blocks.start, len(g.blocks)),
            "t": lambda: _rows(b, t, g),
            "m": lambda: mu,
        }
        return [*(parts[c]() for c in which), *more]

    def _deviation(self, g: Group, j: SX, D: SX, target: SX, mu: SX, a: SX) -> tuple[SX, SX]:
        """Return the deviations x = J a - aref of a group, and their cost."""
        x = ca.densify(SX(self.problem.J[g.index], j) @ a - target)
        return x, sum((c.value(v, w, own) for c, v, w, own in self.problem.blocks(g, x, D, mu)), SX(0))

    def _scale(self, f: SX, a: SX, costs: SX, spacing: SX) -> tuple[SX, SX]:
        """Return the decrease of the cost that is negligible, and whether there is anything to do."""
        cost = ca.sum1(costs)
        return ca.fmax(self.tolerance, REACHED * spacing**2) * (ca.dot(f, a) + cost), ca.if_else(cost > 0, 1, 0)

    # --- an iteration ---------------------------------------------------------------------------------------------

    def _iteration(self) -> Program:
        """Build (a, x, busy, least, flags, data) -> (a, x, busy)."""
        p = self.problem
        b = ProgramBuilder("iteration")
        a, x, _, least, flags, *data = b.inputs(p.nv, p.n, 1, 1, len(p.groups), *p.sizes)
        terms = [
            self._per_group(b, g, flags, self._terms, self._parts(b, data, g, "jdm", _rows(b, x, g))) for g in p.groups
        ]
        step, smooth = b.trace(self._direction, a, data[0], data[1], *(t for pair in terms for t in pair))
        ys = [self._per_group(b, g, flags, self._along, self._parts(b, data, g, "j", step))[0] for g in p.groups]
        y = b.concat(*ys)
        state = self._line_search(b, data, flags, x, y, smooth)
        return b.program(*b.trace(_stepped, a, x, step, y, state, smooth, least))

    def _terms(self, g: Group, *given: SX) -> list[SX]:
        """Return the entries of a group's part of the Hessian and of the generalised forces."""
        return [nonzeros(x) for x in self.problem.terms(g, *given)]

    def _direction(self, a: SX, m: SX, f: SX, *terms: SX) -> tuple[SX, SX]:
        """Return Newton's step, and along it the slope of the smooth part at 0, its change, and the slope of the whole cost at 0.

        terms: of every group, those of the Hessian and those of the forces.
        """
        p = self.problem
        M, H, forces = p.mass(m), SX(p.M, m), SX(p.nv, 1)
        for g, bends, pushes in zip(p.groups, terms[::2], terms[1::2], strict=True):
            bend, push = p.patterns(g)
            H, forces = H + SX(bend, bends), forces + SX(push, pushes)
        pull = M @ a - f
        slope = pull - forces
        step = -factor(H).solve(ca.densify(slope))
        return step, ca.vertcat(ca.dot(step, pull), ca.dot(step, M @ step), ca.dot(step, slope))

    def _along(self, g: Group, j: SX, step: SX) -> SX:
        return SX(self.problem.J[g.index], j) @ step

    def _line_search(self, b: ProgramBuilder, data: list[Var], flags: Var, x: Var, y: Var, smooth: Var) -> Var:
        """Add Newton's method in one dimension, kept in a bracket. State: step, bracket (2), whether to look on, whether the
        slope at the step and its change are those of one quadratic."""
        start = b.constant([1.0, 0.0, FAR, 1.0, 0.0])
        shared = [smooth, x, y, data[3], data[5], flags]
        body = ProgramBuilder("line")
        state, slopes, xs, ys, weights, mu, on = body.inputs(start.size, *(v.size for v in shared))
        found = []
        for g in self.problem.groups:
            own = body.slice(weights, g.blocks.start, len(g.blocks))
            given = [own, mu, _rows(body, xs, g), _rows(body, ys, g), state]
            found += self._per_group(body, g, on, self._slopes, given)
        after = body.program(body.trace(line_step, state, slopes, *found))
        (end,), _ = b.while_loop(lambda state, *_: state[3], after, self.line_search, start, shared)
        return end

    def _slopes(self, g: Group, D: SX, mu: SX, x: SX, y: SX, state: SX) -> SX:
        """Return the slope of a group's cost at the step, and its change."""
        p = self.problem
        first, second = SX(0), SX(0)
        for (cost, v, w, own), (_, rate, _, _) in zip(p.blocks(g, x, D, mu), p.blocks(g, y, D, mu), strict=True):
            d1, d2 = cost.along(v, rate, state[0], w, own)
            first, second = first + d1, second + d2
        return ca.vertcat(first, second)


def _rows(b: ProgramBuilder, x: Var, g: Group) -> Var:
    return b.slice(x, g.rows.start, g.rows.stop - g.rows.start)


def _going(a: SX, x: SX, busy: SX, *shared: SX) -> SX:
    return busy


def line_step(state: SX, smooth: SX, *slopes: SX) -> SX:
    step, low, high = state[0], state[1], state[2]
    total = sum(slopes, ca.vertcat(smooth[0] + step * smooth[1], smooth[1]))
    first, second, start = total[0], total[1], -smooth[2]
    good = ca.fabs(first) <= LINE_TOLERANCE * start
    one = ca.logic_and(step == 1, ca.fabs(first) + ca.fabs(second - start) <= EXACT * start)
    low, high = ca.if_else(first < 0, step, low), ca.if_else(first < 0, high, step)
    newton = step - first / ca.if_else(second > 0, second, 1)
    inside = ca.logic_and(newton > low, newton < high)
    bounded = ca.if_else(high < FAR, (low + high) / 2, 2 * step)
    chosen = ca.if_else(good, step, ca.if_else(inside, newton, bounded))
    return ca.vertcat(chosen, low, high, ca.if_else(good, 0, 1), ca.if_else(one, 1, 0))


def _stepped(a: SX, x: SX, step: SX, y: SX, state: SX, smooth: SX, least: SX) -> tuple[SX, SX, SX]:
    """Take the step; go on unless it was the last."""
    small = -smooth[2] <= least
    busy = ca.if_else(ca.logic_or(state[4] > 0, small), 0, 1)
    return a + state[0] * step, x + state[0] * y, busy


def derivatives(problem: Problem) -> tuple[Callable[..., SX], Callable[..., list[SX]]]:
    """Return tangent and adjoint of the solution, by the implicit function theorem: H da = -d(gradient) at constant a."""
    n = len(problem.sizes)

    def at(flat: Sequence[SX], a: SX) -> tuple[Factor, SX]:
        """Return the factored Hessian, and minus the gradient."""
        d = problem.data(*flat)
        x = d.deviations(a)
        return factor(problem.hessian(d, x)), -problem.gradient(d, a, x)

    def tangent(*given: SX) -> SX:
        flat, a, dots = given[:n], given[n], given[n + 1 :]
        factored, pull = at(flat, a)
        return factored.solve(ca.densify(ca.jtimes(pull, ca.vertcat(*flat), ca.vertcat(*dots))))

    def adjoint(*given: SX) -> list[SX]:
        *flat, a, seed = given
        factored, pull = at(flat, a)
        costate = SX.sym("costate", problem.nv)
        grads = [ca.densify(ca.jtimes(pull, s, costate, True)) for s in flat]
        return ca.substitute(grads, [costate], [factored.solve(seed)])

    return tangent, adjoint
