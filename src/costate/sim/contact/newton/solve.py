"""Newton's method for the accelerations of soft constraints.

    minimise over a:   a' M a / 2 - f' a + sum of costs of (J a - aref)

The cost is convex and its second derivative exists almost everywhere; the Hessian M + J' C J keeps the zeros of the tree between
branches that nothing connects. An iteration is straight functions for the direction, a loop for the step along it, and the step.
Contacts come in groups; a group none of whose contacts acts in any lane is skipped. A lane is done when a step met the minimum of
the quadratic it was made for, or when the decrease it promised was negligible. Derivatives of the solution solve one system with
the Hessian found there.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import factor
from costate.sim.contact.newton.problem import Group, Problem

LINE_TOLERANCE = 0.1
"""Slope at which a line search stops, relative to the slope at its start."""
EXACT = 1e-13
"""Relative accuracy to which the slope after a full step, and its change, must be those of one quadratic for the step to be
exact."""
SINGLE = 1e-12
"""Tolerance that float32 can reach."""
FAR = 1e10
"""Upper end of a line search that has not found one."""


@dataclass(frozen=True, eq=False)
class Solver:
    """The programs that solve the problems of one kind."""

    problem: Problem
    iterations: int
    tolerance: float
    line_search: int

    def program(self) -> Program:
        """Build (flat data) -> a."""
        p = self.problem
        b = ProgramBuilder("newton")
        data = [b.input(f"d{k}", s.numel()) for k, s in enumerate(p.inputs)]
        m, f, _, weights, _, _ = data
        (flags,) = b.call(self._flags(), weights)
        (a,) = b.call(ca.Function("free", p.inputs[:2], [factor(p.full_mass()).solve(p.symbols.f)]), m, f)
        first = [self._per_group(b, g, flags, self._deviation(g), self._parts(b, data, g, "jdtm", a)) for g in p.groups]
        x = b.concat(*(part[0] for part in first))
        costs = b.concat(*(part[1] for part in first))
        # Two stages, so that the sum is rounded as the kernel's numbers are: in float32 it is 1.
        (probe,) = b.call(ca.Function("probe", [], [SX(1 + 2**-40)]))
        least, busy = b.call(self._scale(costs.size), f, a, costs, probe)
        going = SX.sym("busy")
        symbols = [SX.sym("a", p.nv), SX.sym("x", p.n), going, SX.sym("least"), SX.sym("flags", flags.size), *p.inputs]
        condition = ca.Function("going", symbols, [going])
        (a, _, _), _ = b.while_loop(condition, self._iteration(), self.iterations, [a, x, busy], [least, flags, *data])
        b.output("a", a)
        return b.program()

    # --- groups ---------------------------------------------------------------------------------------------------

    def _flags(self) -> ca.Function:
        """Return the flags of the groups: 1 where anything of a group acts."""
        D = self.problem.symbols.D
        rows = []
        for g in self.problem.groups:
            on = SX(0)
            for k in g.blocks:
                on = ca.fmax(on, D[k])
            rows.append(on > 0)
        return ca.Function("flags", [D], [ca.vertcat(*rows)])

    def _per_group(self, b: ProgramBuilder, g: Group, flags: Var, fn: ca.Function, args: list[Var]) -> list[Var]:
        """Add fn(args), or zeros where nothing of the group acts."""
        if g.always:
            return b.call(fn, *args)
        inputs = [SX.sym(f"i{k}", fn.numel_in(k)) for k in range(fn.n_in())]
        none = ca.Function("none", inputs, [SX.zeros(fn.numel_out(k)) for k in range(fn.n_out())])
        return b.cond(b.slice(flags, g.index, 1), fn, none, *args)

    def _parts(self, b: ProgramBuilder, data: list[Var], g: Group, which: str, *more: Var) -> list[Var]:
        """Return a group's part of the data (j: Jacobian, d: weights, t: targets, m: friction coefficients), then more."""
        _, _, j, d, t, mu = data
        parts = {
            "j": lambda: b.slice(j, g.nz.start, g.nz.stop - g.nz.start),
            "d": lambda: b.slice(d, g.blocks.start, len(g.blocks)),
            "t": lambda: b.slice(t, g.rows.start, g.rows.stop - g.rows.start),
            "m": lambda: mu,
        }
        return [*(parts[c]() for c in which), *more]

    def _deviation(self, g: Group) -> ca.Function:
        """Return (Jacobian, weights, targets, friction, a) -> deviations x = J a - aref of a group, and their cost."""
        own = self.problem.part(g)
        a = SX.sym("a", self.problem.nv)
        x = ca.densify(own.J @ a - own.target)
        cost = sum((c.value(v, D, mu) for c, v, D, mu in self.problem.blocks(g, x, own)), SX(0))
        return ca.Function("first", [*own.inputs("jdtm"), a], [x, cost])

    def _scale(self, groups: int) -> ca.Function:
        """Return the decrease of the cost that is negligible, and whether there is anything to do."""
        p = self.problem
        f, a, costs, probe = SX.sym("f", p.nv), SX.sym("a", p.nv), SX.sym("costs", groups), SX.sym("probe")
        cost = ca.sum1(costs)
        tolerance = ca.if_else(probe > 1, self.tolerance, max(self.tolerance, SINGLE))
        least = tolerance * (ca.dot(f, a) + cost)
        return ca.Function("scale", [f, a, costs, probe], [least, ca.if_else(cost > 0, 1, 0)])

    # --- an iteration ---------------------------------------------------------------------------------------------

    def _iteration(self) -> Program:
        """Build (a, x, busy, least, flags, data) -> (a, x, busy)."""
        p = self.problem
        b = ProgramBuilder("iteration")
        a, x = b.input("a", p.nv), b.input("x", p.n)
        b.input("busy", 1)
        least, flags = b.input("least", 1), b.input("flags", len(p.groups))
        data = [b.input(f"d{k}", s.numel()) for k, s in enumerate(p.inputs)]
        xs = [_rows(b, x, g) for g in p.groups]
        terms = [
            self._per_group(b, g, flags, p.terms(g), self._parts(b, data, g, "jdm", own))
            for g, own in zip(p.groups, xs, strict=True)
        ]
        step, smooth = b.call(self._direction(), a, data[0], data[1], *(t for pair in terms for t in pair))
        ys = [self._per_group(b, g, flags, self._along(g), self._parts(b, data, g, "j", step))[0] for g in p.groups]
        y = b.concat(*ys)
        state = self._line_search(b, data, flags, x, y, smooth)
        after = b.call(self._finish(), a, x, step, y, state, smooth, least)
        for name, value in zip(("a", "x", "busy"), after, strict=True):
            b.output(f"{name}_after", value)
        return b.program()

    def _direction(self) -> ca.Function:
        """Return (a, M, f, per group its part of the Hessian and its forces) -> Newton's step, and along it the slope of the
        smooth part at 0, its change, and the slope of the whole cost at 0."""
        p = self.problem
        a, d = SX.sym("a", p.nv), p.symbols
        inputs, H, forces = [], d.M, SX(p.nv, 1)
        for g in p.groups:
            bend, push = p.patterns(g)
            inputs += [SX.sym("h", bend.nnz()), SX.sym("q", push.nnz())]
            H, forces = H + SX(bend, inputs[-2]), forces + SX(push, inputs[-1])
        pull = p.mass_times(a) - d.f
        slope = pull - forces
        step = -factor(H).solve(ca.densify(slope))
        smooth = ca.vertcat(ca.dot(step, pull), ca.dot(step, p.mass_times(step)), ca.dot(step, slope))
        return ca.Function("direction", [a, *p.inputs[:2], *inputs], [step, smooth])

    def _along(self, g: Group) -> ca.Function:
        own = self.problem.part(g)
        step = SX.sym("p", self.problem.nv)
        return ca.Function("along", [*own.inputs("j"), step], [ca.densify(own.J @ step)])

    def _line_search(self, b: ProgramBuilder, data: list[Var], flags: Var, x: Var, y: Var, smooth: Var) -> Var:
        """Add Newton's method in one dimension, kept in a bracket. State: step, bracket (2), whether to look on, whether the
        slope at the step and its change are those of one quadratic."""
        p = self.problem
        (start,) = b.call(ca.Function("one", [], [SX([1.0, 0.0, FAR, 1.0, 0.0])]))
        body = ProgramBuilder("line")
        state, slopes = body.input("state", 5), body.input("smooth", 3)
        xs, ys, weights, mu = (
            body.input(n, k) for n, k in (("x", p.n), ("y", p.n), ("D", data[3].size), ("mu", data[5].size))
        )
        on = body.input("flags", flags.size)
        found = []
        for g in p.groups:
            parts = [_rows(body, v, g) for v in (xs, ys)]
            given = [body.slice(weights, g.blocks.start, len(g.blocks)), mu, *parts, state]
            found += self._per_group(body, g, on, self._slopes(g), given)
        body.output("state_after", body.call(self._line_step(len(found)), state, slopes, *found)[0])
        symbols = [SX.sym("state", 5), *(SX.sym("i", v.size) for v in (smooth, x, y, data[3], data[5], flags))]
        looking = ca.Function("looking", symbols, [symbols[0][3]])
        (end,), _ = b.while_loop(
            looking, body.program(), self.line_search, [start], [smooth, x, y, data[3], data[5], flags]
        )
        return end

    def _slopes(self, g: Group) -> ca.Function:
        """Return (weights, friction, x, y, state) of a group -> slope of its cost at the step, and its change."""
        p, own = self.problem, self.problem.part(g)
        n = g.rows.stop - g.rows.start
        x, y, state = SX.sym("x", n), SX.sym("y", n), SX.sym("state", 5)
        first, second = SX(0), SX(0)
        for (cost, v, D, mu), (_, rate, _, _) in zip(p.blocks(g, x), p.blocks(g, y), strict=True):
            d1, d2 = cost.along(v, rate, state[0], D, mu)
            first, second = first + d1, second + d2
        return ca.Function("slopes", [*own.inputs("dm"), x, y, state], [ca.vertcat(first, second)])

    def _line_step(self, groups: int) -> ca.Function:
        state, smooth = SX.sym("state", 5), SX.sym("smooth", 3)
        found = [SX.sym("slopes", 2) for _ in range(groups)]
        step, low, high = state[0], state[1], state[2]
        total = sum(found, ca.vertcat(smooth[0] + step * smooth[1], smooth[1]))
        first, second, start = total[0], total[1], -smooth[2]
        good = ca.fabs(first) <= LINE_TOLERANCE * start
        one = ca.logic_and(step == 1, ca.fabs(first) + ca.fabs(second - start) <= EXACT * start)
        low, high = ca.if_else(first < 0, step, low), ca.if_else(first < 0, high, step)
        newton = step - first / ca.if_else(second > 0, second, 1)
        inside = ca.logic_and(newton > low, newton < high)
        bounded = ca.if_else(high < FAR, (low + high) / 2, 2 * step)
        chosen = ca.if_else(good, step, ca.if_else(inside, newton, bounded))
        after = ca.vertcat(chosen, low, high, ca.if_else(good, 0, 1), ca.if_else(one, 1, 0))
        return ca.Function("line", [state, smooth, *found], [after])

    def _finish(self) -> ca.Function:
        """Take the step; go on unless it was the last."""
        p = self.problem
        a, x, step, y = (SX.sym(*v) for v in (("a", p.nv), ("x", p.n), ("p", p.nv), ("y", p.n)))
        state, smooth, least = SX.sym("state", 5), SX.sym("smooth", 3), SX.sym("least")
        small = -smooth[2] <= least
        busy = ca.if_else(ca.logic_or(state[4] > 0, small), 0, 1)
        return ca.Function(
            "finish", [a, x, step, y, state, smooth, least], [a + state[0] * step, x + state[0] * y, busy]
        )


def _rows(b: ProgramBuilder, x: Var, g: Group) -> Var:
    return b.slice(x, g.rows.start, g.rows.stop - g.rows.start)


def derivatives(problem: Problem) -> tuple[ca.Function, ca.Function]:
    """Return tangent and adjoint of the solution, by the implicit function theorem: H da = -d(gradient) at constant a."""
    a, seed = SX.sym("a", problem.nv), SX.sym("seed", problem.nv)
    x = problem.deviations(a)
    factored = factor(problem.hessian(x))
    pull = -problem.gradient(a, x)
    dots = [SX.sym(f"t{k}", s.numel()) for k, s in enumerate(problem.inputs)]
    moved = ca.jtimes(pull, ca.vertcat(*problem.inputs), ca.vertcat(*dots))
    tangent = ca.Function("tangent", [*problem.inputs, a, *dots], [factored.solve(ca.densify(moved))])
    costate = SX.sym("costate", problem.nv)
    grads = [ca.densify(ca.jtimes(pull, s, costate, True)) for s in problem.inputs]
    grads = ca.substitute(grads, [costate], [factored.solve(seed)])
    return tangent, ca.Function("adjoint", [*problem.inputs, a, seed], grads)
