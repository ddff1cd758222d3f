"""Newton's method for the accelerations of soft constraints.

    minimise over a:   a' M a / 2 - f' a + sum of costs of (J a - aref)

The cost is convex and its second derivative exists almost everywhere; the Hessian M + J' C J keeps the zeros of the tree between
branches that nothing connects. An iteration is a straight function for the direction, a loop for the step along it, and the
step. A lane is done when a full step does not change which quadratic the cost is, or when the decrease it promised was negligible.
Derivatives of the solution solve one system with the Hessian found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.program import Program
from costate.physics.ltl import factor
from costate.sim.contact_models import Newton
from costate.sim.newton_cost import Cost

LINE_TOLERANCE = 1e-3
"""Slope at which a line search stops, relative to the slope at its start."""


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of a problem, as symbols or expressions."""

    M: SX
    """(nv, nv), lower triangle."""
    f: SX
    J: SX
    """(n, nv)."""
    D: SX
    """Weight of every block, (blocks,)."""
    target: SX
    """aref, (n,)."""
    mu: SX
    """Friction coefficients that are not constant, (any,)."""

    def flat(self) -> list[SX]:
        """Dense columns."""
        return [ca.densify(x) for x in (nonzeros(self.M), self.f, nonzeros(self.J), self.D, self.target, self.mu)]


@dataclass(frozen=True, eq=False)
class Solver:
    """What the problems of all states have in common: patterns and kinds of costs."""

    M: ca.Sparsity
    J: ca.Sparsity
    costs: tuple[Cost, ...]
    friction: tuple[tuple[float | int, ...], ...]
    """Per block its coefficients: numbers (float), or places in Data.mu (int)."""
    options: Newton

    @property
    def nv(self) -> int:
        return self.M.size1()

    @cached_property
    def symbols(self) -> Data:
        variable = 1 + max((m for row in self.friction for m in row if isinstance(m, int)), default=-1)
        n = self.J.size1()
        sizes = {"f": self.nv, "D": len(self.costs), "target": n, "mu": variable}
        f, D, target, mu = (SX.sym(name, size) for name, size in sizes.items())
        return Data(SX.sym("m", self.M), f, SX.sym("j", self.J), D, target, mu)

    @cached_property
    def inputs(self) -> list[SX]:
        d = self.symbols
        return [nonzeros(d.M), d.f, nonzeros(d.J), d.D, d.target, d.mu]

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _blocks(self, x: SX):
        """(cost, slice of rows, x of the block, weight, friction coefficients)."""
        at, d = 0, self.symbols
        for k, (cost, own) in enumerate(zip(self.costs, self.friction, strict=True)):
            rows = slice(at, at + cost.dim)
            mu = [d.mu[m] if isinstance(m, int) else SX(m) for m in own]
            yield cost, rows, [x[i] for i in range(at, at + cost.dim)], d.D[k], mu
            at += cost.dim

    def _mass_times(self, a: SX) -> SX:
        lower = self.symbols.M
        return lower @ a + ca.tril(lower, False).T @ a

    def force(self, x: SX) -> SX:
        """Of all rows, (n,)."""
        return ca.vertcat(*(f for cost, _, own, D, mu in self._blocks(x) for f in cost.force(own, D, mu)))

    def _hessian(self, x: SX) -> SX:
        J = self.symbols.J
        C = [cost.hessian(own, D, mu) for cost, _, own, D, mu in self._blocks(x)]
        curved = ca.diagcat(*C) @ J
        return self.symbols.M + ca.tril(J.T @ curved)

    def _gradient(self, a: SX, x: SX) -> SX:
        return self._mass_times(a) - self.symbols.f - self.symbols.J.T @ self.force(x)

    # --- solution -------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """(flat data) -> a."""
        b = ProgramBuilder("newton")
        data = [b.input(f"d{k}", s.numel()) for k, s in enumerate(self.inputs)]
        a, x, scale, busy = b.call(self._start(), *data)
        body = self._iteration()
        going = SX.sym("busy")
        carries = [SX.sym("a", self.nv), SX.sym("x", x.size), going]
        condition = ca.Function("going", [*carries, SX.sym("scale"), *self.inputs], [going])
        (a, _, _), _ = b.while_loop(condition, body, self.options.iterations, [a, x, busy], [scale, *data])
        b.output("a", a)
        return b.program()

    def _start(self) -> ca.Function:
        """Accelerations without constraints, their deviations, the scale of the cost, and whether there is anything to do."""
        d = self.symbols
        full = d.M + ca.tril(d.M, False).T
        a = factor(full).solve(d.f)
        x = d.J @ a - d.target
        cost = sum((c.value(own, D, mu) for c, _, own, D, mu in self._blocks(x)), SX(0))
        scale = ca.dot(d.f, a) + cost
        return ca.Function("start", self.inputs, [a, ca.densify(x), scale, ca.if_else(cost > 0, 1, 0)])

    def _iteration(self) -> Program:
        """(a, x, busy, scale, data) -> (a, x, busy)."""
        b = ProgramBuilder("iteration")
        n = self.J.size1()
        a, x = b.input("a", self.nv), b.input("x", n)
        b.input("busy", 1)
        scale = b.input("scale", 1)
        data = [b.input(f"d{k}", s.numel()) for k, s in enumerate(self.inputs)]
        p, y, smooth = b.call(self._direction(), a, x, *data)
        weights = [data[3], data[5]]
        (state,) = b.call(self._first_step())
        (state,), _ = b.while_loop(*self._line_step(), self.options.line_search, [state], [smooth, x, y, *weights])
        for name, value in zip(
            ("a", "x", "busy"), b.call(self._finish(), a, x, p, y, state, smooth, scale, *weights), strict=True
        ):
            b.output(f"{name}'", value)
        return b.program()

    def _direction(self) -> ca.Function:
        """(a, x, data) -> p, y = J p, and the slope of the smooth part: (at 0, its change, slope of all at 0)."""
        a, x = SX.sym("a", self.nv), SX.sym("x", self.J.size1())
        d = self.symbols
        g = self._gradient(a, x)
        p = -factor(self._hessian(x)).solve(g)
        y = ca.densify(d.J @ p)
        smooth = ca.vertcat(ca.dot(p, self._mass_times(a) - d.f), ca.dot(p, self._mass_times(p)), ca.dot(g, p))
        return ca.Function("direction", [a, x, *self.inputs], [p, y, smooth])

    def _line_inputs(self) -> list[SX]:
        n, d = self.J.size1(), self.symbols
        return [SX.sym("smooth", 3), SX.sym("x", n), SX.sym("y", n), d.D, d.mu]

    def _slope(self, step: SX, smooth: SX, x: SX, y: SX) -> tuple[SX, SX]:
        """First and second derivative of the cost along the line."""
        first, second = smooth[0] + step * smooth[1], smooth[1]
        for (cost, _, own, D, mu), (_, _, along, _, _) in zip(self._blocks(x), self._blocks(y), strict=True):
            d1, d2 = cost.along(own, along, step, D, mu)
            first, second = first + d1, second + d2
        return first, second

    def _first_step(self) -> ca.Function:
        """Step 1 in a bracket without upper end; whether it is accepted is not known yet."""
        return ca.Function("first", [], [SX([1.0, 0.0, 1e10, 1.0])])

    def _line_step(self) -> tuple[ca.Function, ca.Function]:
        """Condition and body of the line search. State: step, bracket, whether the slope must be looked at."""
        state = SX.sym("state", 4)
        inputs = self._line_inputs()
        smooth, x, y = inputs[:3]
        step, low, high = state[0], state[1], state[2]
        first, second = self._slope(step, smooth, x, y)
        good = ca.fabs(first) <= LINE_TOLERANCE * ca.fabs(smooth[2])
        low, high = ca.if_else(first < 0, step, low), ca.if_else(first < 0, high, step)
        newton = step - first / ca.if_else(second > 0, second, 1)
        inside = ca.logic_and(newton > low, newton < high)
        bounded = ca.if_else(high < 1e9, (low + high) / 2, 2 * step)
        chosen = ca.if_else(good, step, ca.if_else(inside, newton, bounded))
        after = ca.vertcat(chosen, low, high, ca.if_else(good, 0, 1))
        condition = ca.Function("looking", [state, *inputs], [state[3]])
        return condition, ca.Function("line", [state, *inputs], [after])

    def _finish(self) -> ca.Function:
        """Take the step; go on unless it was the last."""
        a, x, p, y = (
            SX.sym(n, k) for n, k in (("a", self.nv), ("x", self.J.size1()), ("p", self.nv), ("y", self.J.size1()))
        )
        state, smooth, scale = SX.sym("state", 4), SX.sym("smooth", 3), SX.sym("scale")
        step = state[0]
        there = x + step * y
        changed = SX(0)
        for (cost, _, own, D, mu), (_, _, new, _, _) in zip(self._blocks(x), self._blocks(there), strict=True):
            changed = changed + cost.changed(own, new, D, mu)
        settled = ca.logic_and(step == 1, changed == 0)
        small = -smooth[2] <= self.options.tolerance * scale
        busy = ca.if_else(ca.logic_or(settled, small), 0, 1)
        weights = [self.symbols.D, self.symbols.mu]
        return ca.Function("finish", [a, x, p, y, state, smooth, scale, *weights], [a + step * p, there, busy])

    # --- derivatives ----------------------------------------------------------------------------------------------

    def derivatives(self) -> tuple[ca.Function, ca.Function]:
        """Tangent and adjoint of the solution, by the implicit function theorem: H da = -d(gradient) at constant a."""
        d = self.symbols
        a, seed = SX.sym("a", self.nv), SX.sym("seed", self.nv)
        x = d.J @ a - d.target
        factored = factor(self._hessian(x))
        pull = -self._gradient(a, x)
        every = ca.vertcat(*self.inputs)
        dots = [SX.sym(f"t{k}", s.numel()) for k, s in enumerate(self.inputs)]
        moved = ca.jtimes(pull, every, ca.vertcat(*dots))
        tangent = ca.Function("tangent", [*self.inputs, a, *dots], [factored.solve(ca.densify(moved))])
        costate = SX.sym("costate", self.nv)
        grads = [ca.densify(ca.jtimes(pull, s, costate, True)) for s in self.inputs]
        grads = ca.substitute(grads, [costate], [factored.solve(seed)])
        return tangent, ca.Function("adjoint", [*self.inputs, a, seed], grads)


def nonzeros(A: SX) -> SX:
    """As a column; of a row CasADi makes a row."""
    return ca.vec(SX(A.nz[:])) if A.nnz() else SX(0, 1)


def pack(values: Sequence[Sequence[SX]]) -> tuple[tuple[tuple[float | int, ...], ...], SX]:
    """Friction coefficients as numbers, or as places in the vector of those that are not constant."""
    variable: list[SX] = []
    rows = []
    for own in values:
        row: list[float | int] = []
        for m in own:
            if m.is_constant():
                row.append(float(m))
                continue
            known = next((k for k, v in enumerate(variable) if ca.is_equal(v, m, 1)), None)
            if known is None:
                known = len(variable)
                variable.append(m)
            row.append(known)
        rows.append(tuple(row))
    return tuple(rows), ca.vertcat(*variable) if variable else SX(0, 1)
