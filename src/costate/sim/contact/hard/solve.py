"""Hard contact by a primal-dual semi-smooth Newton method, and its derivative.

    guess     open, stick or slide, from the last velocities and impulses            (law.py)
    solve     (M + J' C J) dv = p + J' aim - M v,   l = aim - C J dv
    until     no row misses its law, and no momentum its balance, by more than the tolerance

From impulses that carry the weight of what touches, a robot on its feet needs one iteration, a stack two. Where LIMIT iterations
do not do (heaps that are thrown together), rescue.py goes on. Derivatives follow from the solution alone: the same system,
linearised there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.tracing import Later
from costate.sim.contact.hard.law import by_type
from costate.sim.contact.hard.lu import LU
from costate.sim.contact.hard.problem import Law, Problem
from costate.sim.contact.hard.rescue import Rescue

LIMIT = 8
"""Iterations before a sample is handed to the rescue."""
EPS = (1e-8, 1e-4)
"""Compliance of closed rows by their ease, in float64 and in float32."""
NEAR = 1e-6
"""Residual below which the guess of what is closed is taken for right [m/s or rad/s]: only what EPS leaves is missed."""
HARDER = (1e-10, 1e-4)
"""Compliance from there on. What EPS leaves shrinks little by little where a light body carries a million times its mass."""
TOLERANCE = (2e-9, 2e-5)
"""Largest speed by which a row may miss its law, or momentum its balance [m/s or rad/s], in float64 and in float32. Rows are
measured one by one, with constant masses; as one contact of the true problem they miss it by up to three times as much."""
WANTED = (1e-9, 2e-7)
"""Speed at which iterations stop before their limit, in float64 and in float32."""
EXACT = (1e-12, 2e-7)
"""The same for impacts with restitution, which should keep energy."""
LINEAR = (1e-6, 1e-2)
"""Compliance of closed rows in derivatives. It is larger: factors lose as many digits as it has zeros, and its error goes with each
pass."""
PASSES = 3
"""Solves of a derivative with the same factors, each for what the last one has left."""
HUGE = 1e30
"""Square of a velocity beyond which an iteration has failed."""


def _not(good: SX, v: SX) -> SX:
    """Return 0 if a solution is good and finite, else 1."""
    return ca.if_else(ca.logic_and(good, ca.sumsqr(v) < HUGE), 0, 1)


@dataclass(frozen=True, eq=False)
class Solver:
    """The stage that solves the problems of one kind: (spacing of numbers, those of the problem, v, l) -> v, l, residual."""

    problem: Problem
    limit: int = LIMIT
    rounds: int = 0
    """Rounds of the rescue; 0: there is none."""
    wanted: tuple[float, float] = WANTED
    """Speed by which a row may miss its law for iterations to stop, in float64 and in float32."""

    def add(self, b: ProgramBuilder, numbers: Sequence[Var], v: Var, impulses: Var) -> tuple[Var, Var, Var]:
        """Add the solution of a problem. numbers: see Problem.sizes; v, impulses: what to start from."""
        given = [b.epsilon(), *numbers, v, impulses]
        v, impulses, residual = b.custom(self.program, *given, tangent=Later(self.tangent), adjoint=Later(self.adjoint))
        return v, impulses, residual

    @property
    def sizes(self) -> list[int]:
        return [1, *self.problem.sizes, self.problem.nv, self.problem.n]

    @cached_property
    def program(self) -> Program:
        b = ProgramBuilder("hard")
        spacing, *numbers, v, impulses = given = b.inputs(*self.sizes)
        start = [v, impulses, b.trace(lambda j, v: self.problem.rows(j) @ v, numbers[2], v), b.constant([1.0, 0.0])]
        end, _ = b.while_loop(self.going, self.iteration, self.limit, start, [spacing, *numbers])
        v, impulses, _, state = end
        if self.rounds:
            state = b.trace(self.accepted, spacing, v, state)
            v, impulses, state = Rescue(self, self.rounds).add(b, given, [v, impulses, state])
        return b.program(v, impulses, b.slice(state, 1, 1))

    # --- an iteration -------------------------------------------------------------------------------------------------

    def going(self, v: SX, impulses: SX, u: SX, state: SX, *numbers: SX) -> SX:
        return state[0]

    def iteration(self, v: SX, impulses: SX, u: SX, state: SX, *numbers: SX) -> list[SX]:
        """Return v, l, u = J v and (whether to go on, residual) after an iteration."""
        spacing, m, p, j, t, bounds = numbers
        near = ca.logic_and(state[1] > 0, state[1] < NEAR)
        stiff = 1 / ca.if_else(near, by_type(spacing, HARDER), by_type(spacing, EPS))
        M, J = self.problem.mass(m), self.problem.rows(j)
        law = self.problem.law(u, t, impulses, bounds, stiff)
        change = LU.of(M + J.T @ (law.C @ J)).solve(p + J.T @ law.aim - M @ v)
        du = ca.densify(J @ change)
        v, u, impulses = v + change, u + du, ca.densify(law.aim - law.C @ du)
        left = self.problem.unbalanced(p + J.T @ impulses - M @ v)
        return [v, impulses, u, self.state(spacing, v, u, t, impulses, bounds, left)]

    def state(self, spacing: SX, v: SX, u: SX, t: SX, impulses: SX, bounds: SX, unbalanced: SX) -> SX:
        """Return whether to go on, and the residual. unbalanced: speed that momentum which is left over would cause.

        Closed rows are so stiff that the rounding of their impulses counts where speeds change much, as in an impact: their laws do
        not notice it, but velocities would not be those that the impulses cause. One more iteration, from there, has none of it.
        """
        left = ca.fmax(self.problem.law(u, t, impulses, bounds, SX(1)).residual(impulses), unbalanced)
        return ca.vertcat(_not(left <= by_type(spacing, self.wanted), v), left)

    def accepted(self, spacing: SX, v: SX, state: SX) -> SX:
        """Return the state of an end: not as good as wanted may be good enough."""
        return ca.vertcat(_not(state[1] <= by_type(spacing, TOLERANCE), v), state[1])

    # --- derivatives --------------------------------------------------------------------------------------------------
    #
    # A derivative takes the steps of the iteration, with the laws linearised at the solution: C, and the part K of the last
    # impulses that a law keeps. It begins at dv = 0, dl = 0:
    #
    #     law = K dl + C (dt - dJ v - J dv) + (dl/d bounds) d bounds
    #     dv += H^-1 (dp - dM v + dJ' l - M dv + J' law),    dl = law - C J (change of dv)
    #
    # What eps and rounding leave shrinks with each pass. Seeds take the transposed steps. The factors of H are a stage of
    # their own, which all tangents and seeds share.

    def _factored(self, spacing: SX, m: SX, j: SX, t: SX, bounds: SX, v: SX, impulses: SX) -> tuple[Law, LU]:
        J = self.problem.rows(j)
        law = self.problem.law(ca.densify(J @ v), t, impulses, bounds, 1 / by_type(spacing, LINEAR))
        return law, LU.of(self.problem.mass(m) + J.T @ (law.C @ J))

    def _linearized(self, b: ProgramBuilder, given: Sequence[Var]) -> tuple[_Linear, list[Var]]:
        """Add the system at the solution; return what reads its numbers, and these."""
        spacing, m, _, j, t, bounds, _, _, v, impulses, _ = given
        args = [spacing, m, j, t, bounds, v, impulses]
        law, lu = self._factored(*(SX.sym("x", a.size) for a in args))

        def found(*symbols: SX) -> list[SX]:
            law, lu = self._factored(*symbols)
            return [lu.numbers(), nonzeros(law.C), nonzeros(law.keep), law.by_bound]

        factors, c, keep, by_bound = b.trace(found, *args)
        linear = _Linear(self.problem, lu, law.C.sparsity(), law.keep.sparsity(), law.owners)
        return linear, [factors, m, c, keep, by_bound, j, v, impulses]

    def tangent(self) -> Program:
        """Build (inputs, outputs, tangents of inputs) -> tangents of outputs."""
        b = ProgramBuilder("tangent")
        given, dots = self._derivative_inputs(b), b.inputs(*self.sizes)
        linear, numbers = self._linearized(b, given)
        return b.program(*linear.tangent(b, numbers, dots[1:6]), b.zeros(1))

    def adjoint(self) -> Program:
        """Build (inputs, outputs, seeds of outputs) -> gradients of inputs."""
        b = ProgramBuilder("adjoint")
        given, seeds = self._derivative_inputs(b), b.inputs(self.problem.nv, self.problem.n, 1)
        linear, numbers = self._linearized(b, given)
        out = linear.adjoint(b, numbers, seeds[:2])
        return b.program(b.zeros(1), *out, b.zeros(self.problem.nv), b.zeros(self.problem.n))

    def _derivative_inputs(self, b: ProgramBuilder) -> list[Var]:
        return b.inputs(*self.sizes, self.problem.nv, self.problem.n, 1)


@dataclass(frozen=True, eq=False)
class _Linear:
    """The linear system at a solution. Its numbers: factors of H, M, C, K, changes of impulses by the bounds, J, v, l."""

    problem: Problem
    lu: LU
    C: ca.Sparsity
    keep: ca.Sparsity
    owners: list[int]

    def tangent(self, b: ProgramBuilder, numbers: Sequence[Var], dots: Sequence[Var]) -> tuple[Var, ...]:
        """Add dv and dl. dots: tangents of M, p, J, targets, bounds."""
        p = self.problem
        factors, m, c, keep, by_bound, j, v, impulses = numbers

        def given(c: SX, by_bound: SX, j: SX, v: SX, impulses: SX, *dots: SX) -> list[SX]:
            dm, dp, dj, dt, db = dots
            dJ = p.rows(dj)
            law = by_bound * ca.vertcat(*(db[k] for k in self.owners)) + SX(self.C, c) @ (dt - dJ @ v)
            return [dp + dJ.T @ impulses - p.mass(dm) @ v, law]

        def left(m: SX, c: SX, keep: SX, j: SX, push: SX, law: SX, dv: SX, dl: SX) -> list[SX]:
            J = p.rows(j)
            law = law + SX(self.keep, keep) @ dl - SX(self.C, c) @ (J @ dv)
            return [push - p.mass(m) @ dv + J.T @ law, law]

        push, fixed = b.trace(given, c, by_bound, j, v, impulses, *dots)
        dv, dl = b.zeros(p.nv), b.zeros(p.n)
        for _ in range(PASSES):
            side, law = b.trace(left, m, c, keep, j, push, fixed, dv, dl)
            change = self._solved(b, [factors, m, c, j, side], transposed=False)
            dv = b.add(dv, change)
            dl = b.trace(lambda law, c, j, x: law - SX(self.C, c) @ (p.rows(j) @ x), law, c, j, change)
        return dv, dl

    def adjoint(self, b: ProgramBuilder, numbers: Sequence[Var], seeds: Sequence[Var]) -> tuple[Var, ...]:
        """Add the gradients by M, p, J, targets, bounds. seeds: those of v and l."""
        p = self.problem
        factors, m, c, keep, by_bound, j, v, impulses = numbers

        def left(m: SX, c: SX, keep: SX, j: SX, v_bar: SX, l_bar: SX, z: SX, y: SX) -> list[SX]:
            J = p.rows(j)
            own = l_bar + SX(self.keep, keep).T @ y + J @ z
            return [v_bar - p.mass(m) @ z - J.T @ (SX(self.C, c).T @ own), own]

        z, y = b.zeros(p.nv), b.zeros(p.n)
        for _ in range(PASSES):
            side, own = b.trace(left, m, c, keep, j, *seeds, z, y)
            change = self._solved(b, [factors, m, c, j, side], transposed=True)
            z = b.add(z, change)
            y = b.trace(lambda own, j, x: own + p.rows(j) @ x, own, j, change)

        def gradients(z: SX, y: SX, c: SX, by_bound: SX, v: SX, impulses: SX) -> list[SX]:
            w = ca.densify(SX(self.C, c).T @ y)
            pairs = zip(*p.J.get_triplet(), strict=True)
            by_rows = [impulses[i] * z[k] - w[i] * v[k] for i, k in pairs]
            pushed = by_bound * y
            by_bounds = [sum((pushed[i] for i in block.rows), SX(0)) for block in p.blocks]
            return [-self._by_mass(z, v), z, ca.vertcat(SX(0, 1), *by_rows), w, ca.vertcat(*by_bounds)]

        return b.trace(gradients, z, y, c, by_bound, v, impulses)

    def _by_mass(self, x: SX, y: SX) -> SX:
        """Return the change of x' M y by the entries of M's lower triangle."""
        pairs = zip(*self.problem.M.get_triplet(), strict=True)
        return ca.vertcat(*(x[i] * y[k] + x[k] * y[i] if i != k else x[i] * y[i] for i, k in pairs))

    # A solve with factors that are known. Its own derivatives, of second order for a step, are solves with the same factors: those
    # of an elimination would lose all digits to the stiffness of closed rows.

    def _solved(self, b: ProgramBuilder, given: Sequence[Var], transposed: bool) -> Var:
        """Add H^-1 r or H^-T r. given: factors, M, C, J, r."""
        p = self.problem

        def solve(factors: SX, r: SX, transposed: bool) -> SX:
            lu = self.lu.like(factors)
            return lu.solve_transposed(r) if transposed else lu.solve(r)

        def tangent(factors: SX, m: SX, c: SX, j: SX, r: SX, x: SX, *dots: SX) -> SX:
            _, dm, dc, dj, dr = dots
            J, dJ, C, dC = p.rows(j), p.rows(dj), SX(self.C, c), SX(self.C, dc)
            C, dC = (C.T, dC.T) if transposed else (C, dC)
            u = J @ x
            change = p.mass(dm) @ x + dJ.T @ (C @ u) + J.T @ (dC @ u + C @ (dJ @ x))
            return solve(factors, ca.densify(dr - change), transposed)

        def adjoint(factors: SX, m: SX, c: SX, j: SX, r: SX, x: SX, seed: SX) -> list[SX]:
            y = solve(factors, seed, not transposed)
            left, right = (x, y) if transposed else (y, x)  # of left' dH right
            J, C = p.rows(j), SX(self.C, c)
            u, w = ca.densify(J @ left), ca.densify(J @ right)
            by_c = [-u[i] * w[k] for i, k in zip(*self.C.get_triplet(), strict=True)]
            pulled, pushed = ca.densify(C.T @ u), ca.densify(C @ w)
            pairs = zip(*p.J.get_triplet(), strict=True)
            by_rows = [-(pushed[i] * left[k] + pulled[i] * right[k]) for i, k in pairs]
            return [
                SX.zeros(factors.numel()),
                -self._by_mass(left, right),
                ca.vertcat(SX(0, 1), *by_c),
                ca.vertcat(SX(0, 1), *by_rows),
                y,
            ]

        def body(factors: SX, m: SX, c: SX, j: SX, r: SX) -> SX:
            return solve(factors, r, transposed)

        return b.custom(body, *given, tangent=Later(lambda: tangent), adjoint=Later(lambda: adjoint))[0]


def nonzeros(A: SX) -> SX:
    """Return the entries of a sparse matrix as a vector."""
    return ca.vec(SX(A.nz[:])) if A.nnz() else SX(0, 1)  # of a row it is a row
