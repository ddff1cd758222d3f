"""The time at which contacts and limits begin or end: one more term of the derivative of accelerations, and no value.

The force of a soft constraint is not zero where it begins, and a step knows only whether it acts. So the program is smooth while a
gap g closes within a step, and jumps where it closes one step earlier; its own derivative lacks the jumps, at any step length. With
the phase phi = g / (g' dt), the part of a step since the crossing, the motion's derivative has besides (saltation, s = 1 where a
constraint begins, -1 where it ends):

    da = s (a_on - a_off) dphi          both accelerations at g = 0; half of it in the step before, which closes the gap

What begins or ends in the same step shares one more solution a0, with all of it at g = 0: f_c is the force of block c there,
H_off the Hessian there without these blocks, and

    da = H_off^-1 sum over c of s_c J_c' f_c dphi_c

At grazing 1 / g' has no bound. A force that more than stops a row within a step has no time of its own: s is made smaller by as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.kernel.tracing import body_program
from costate.physics.algebra.ltl import Factor, factor
from costate.sim.contact.newton.problem import Problem
from costate.sim.contact.newton.solve import Solver, derivatives

TINY = 1e-30
"""Acceleration in place of none, where one is divided by [m/s^2]."""


def crossing(depth: SX, rate: SX, after: SX, dt: float) -> tuple[SX, SX, SX]:
    """Return how depths cross 0 in the step that ended, or in this one: half the sign (1/2 begins, -1/2 ends, 0 neither), the
    phase, and the speed. rate, after: rates of the depths before and after the step; all (n,)."""
    begins, ends = ca.logic_and(depth < 0, depth > rate * dt), ca.logic_and(depth >= 0, depth < rate * dt)
    has = ca.logic_or(begins, ends)
    to = depth + dt * after
    begins_next, ends_next = ca.logic_and(depth >= 0, to < 0), ca.logic_and(depth < 0, to >= 0)
    will = ca.logic_and(ca.logic_not(has), ca.logic_or(begins_next, ends_next))
    sign = ca.if_else(has, begins - ends, ca.if_else(will, begins_next - ends_next, 0)) / 2
    now, soon = (x / ca.if_else(on, r * dt, 1) for x, on, r in ((depth, has, rate), (to, will, after)))
    phase = ca.if_else(has, now, ca.if_else(will, soon, 0))
    return sign, phase, ca.fabs(ca.if_else(has, rate, after))


def bounded(sign: SX, speed: SX, change: SX, dt: float) -> SX:
    """Return signs, smaller where a force changes the row's speed by more than the speed within a step. change: acceleration of
    the rows by the forces of all that begins or ends."""
    return sign * speed / ca.fmax(ca.fmax(speed, dt * ca.fabs(change)), TINY)


@dataclass(frozen=True, eq=False)
class Onsets:
    """The term for the blocks of one problem that begin and end. There are n rows and m such blocks."""

    problem: Problem
    solver: Solver
    dt: float

    def timed(self, b: ProgramBuilder, a: Var, v: Var, depth: Var, first: Var, numbers: Sequence[Var]) -> Var:
        """Add accelerations whose derivative has the term. v: velocities (nv,); depth, first: see Data; numbers: Data.flat."""
        given = [a, v, depth, first, *numbers]
        sizes = [x.size for x in given]
        (a,) = b.custom(
            lambda a, *_: a, *given, tangent=self._tangent(sizes), adjoint=self._adjoint(sizes)
        )
        return a

    def _tangent(self, sizes: list[int]) -> Program:
        """Build (given, a, tangents of the given) -> tangent of a."""
        k, p = len(sizes), self.problem
        b = ProgramBuilder("onset_tangent")
        values = b.inputs(*sizes, p.nv, *sizes)
        given, dots = values[:k], values[k + 1 :]
        flag, push, factors = self._jump(b, given)
        moved = b.trace(self._phase_moved, *_read(given), *_read(dots))
        (shift,) = b.cond(flag, self._shift, lambda *_: SX.zeros(p.nv), given[J_AT], push, factors, moved)
        return b.program(b.add(dots[0], shift))

    def _adjoint(self, sizes: list[int]) -> Program:
        """Build (given, a, seed) -> gradients of the given."""
        k, p = len(sizes), self.problem
        b = ProgramBuilder("onset_adjoint")
        values = b.inputs(*sizes, p.nv, p.nv)
        given, seed = values[:k], values[-1]
        flag, push, factors = self._jump(b, given)
        read = _read(given)
        of_read = b.cond(
            flag, self._pulled, lambda *_: [SX.zeros(v.size) for v in read], *read, push, factors, seed
        )
        of_a, of_v, of_depth, of_j = of_read
        grads = [b.add(seed, of_a), of_v, of_depth, *(b.zeros(n) for n in sizes[3:])]
        grads[J_AT] = of_j
        return b.program(*grads)

    # --- the jump of accelerations --------------------------------------------------------------------------------

    def _jump(self, b: ProgramBuilder, given: Sequence[Var]) -> tuple[Var, Var, Var]:
        """Add whether anything begins or ends; then the forces of its rows times their signs, and the factors of H_off."""
        sign, speed = b.trace(lambda *x: self._crossing(*x)[::2], *_read(given))
        flag = b.trace(lambda s: ca.mmax(ca.fabs(s)) > 0, sign)
        args = [*given[1:], sign, speed]
        body = self._jump_program([x.size for x in args])
        push, factors = b.cond(flag, body, lambda *_: [SX.zeros(n) for n in body.out_sizes], *args)
        return flag, push, factors

    def _crossing(self, a: SX, v: SX, depth: SX, j: SX) -> tuple[SX, SX, SX]:
        J = self._normals(j)
        return crossing(depth, ca.densify(J @ v), ca.densify(J @ (v + self.dt * a)), self.dt)

    def _normals(self, j: SX) -> SX:
        """Return the first rows of the blocks that begin and end, (m, nv)."""
        p = self.problem
        return self._rows(j)[[p.first_rows[k] for k in p.onsets], :]

    def _rows(self, j: SX) -> SX:
        p = self.problem
        return ca.vertcat(*(SX(pattern, j[g.nz]) for pattern, g in zip(p.J, p.groups, strict=True)))

    def _per_row(self, values: SX) -> SX:
        """Return numbers of blocks that begin and end for every row, (n,); 0 for all others."""
        p, rows = self.problem, SX.zeros(self.problem.n)
        for i, k in enumerate(p.onsets):
            rows[p.first_rows[k] : p.first_rows[k] + p.costs[k].dim] = values[i]
        return rows

    def _jump_program(self, sizes: list[int]) -> Program:
        b = ProgramBuilder("jump")
        v, _, first, m, f, j, D, target, mu, sign, speed = b.inputs(*sizes)
        D0, target0 = b.trace(self._at_zero, v, first, j, D, target, sign)
        tangent, adjoint = derivatives(self.problem)
        (a0,) = b.custom(self.solver.program(), m, f, j, D0, target0, mu, tangent=tangent, adjoint=adjoint)
        return b.program(*b.trace(self._pushes, a0, sign, speed, D0, target0, m, f, j, D, target, mu))

    def _at_zero(self, v: SX, first: SX, j: SX, D: SX, target: SX, sign: SX) -> tuple[SX, SX]:
        """Return weights and targets, those of what begins or ends at depth 0."""
        p = self.problem
        weight, damping = ca.vertsplit(first, len(p.onsets))
        own = [p.onsets.index(k) if k in p.onsets else -1 for k in range(len(p.costs))]
        D0 = [D[k] if i < 0 else ca.if_else(sign[i] != 0, weight[i], D[k]) for k, i in enumerate(own)]
        slowed = -self._per_row(damping) * (self._rows(j) @ v)
        return ca.vertcat(*D0), ca.if_else(self._per_row(sign) != 0, slowed, target)

    def _pushes(self, a0: SX, sign: SX, speed: SX, D0: SX, target0: SX, *flat: SX) -> tuple[SX, SX]:
        """Return the forces at a0 of what begins or ends times their bounded signs, (n,), and the factors of H_off."""
        p, (m, f, j, D, target, mu) = self.problem, flat
        on = p.data(m, f, j, D0, target0, mu)
        rows = self._per_row(sign)
        force = ca.if_else(rows != 0, p.force(on, on.deviations(a0)), 0)
        off = p.data(m, f, j, self._left(D, sign), target, mu)
        H = factor(p.hessian(off, off.deviations(a0)))
        change = self._normals(j) @ H.solve(ca.densify(self._rows(j).T @ force))
        return force * self._per_row(bounded(sign, speed, change, self.dt)), H.flat()

    def _left(self, D: SX, sign: SX) -> SX:
        """Return the weights without what begins or ends."""
        left = ca.vertsplit(D)
        for i, k in enumerate(self.problem.onsets):
            left[k] = ca.if_else(sign[i] != 0, 0, left[k])
        return ca.vertcat(*left)

    # --- its product with phases ----------------------------------------------------------------------------------

    @cached_property
    def _factor(self) -> Factor:
        """Factors of a Hessian, for their zeros."""
        p = self.problem
        bends = (SX(p.patterns(g)[0], 1) for g in p.groups)
        pattern = sum(bends, SX(p.M, 1)).sparsity()
        return factor(SX.sym("H", pattern))

    def _phase_moved(self, *given: SX) -> SX:
        """Return the tangents of the phases, (m,). given: a, v, depth, j; their tangents."""
        read, dots = given[:4], given[4:]
        return ca.jtimes(self._crossing(*read)[1], ca.vertcat(*read), ca.vertcat(*dots))

    def _shift(self, j: SX, push: SX, factors: SX, moved: SX) -> SX:
        """Return the term: accelerations (nv,) for tangents of the phases."""
        return self._factor.filled(factors).solve(ca.densify(self._rows(j).T @ (push * self._per_row(moved))))

    def _pulled(self, *given: SX) -> list[SX]:
        """Return the gradients of a, v, depth and j. given: these; forces, factors, seed of a."""
        *read, push, factors, seed = given
        work = push * (self._rows(read[3]) @ self._factor.filled(factors).solve(seed))
        p = self.problem
        bars = [ca.sum1(work[p.first_rows[k] : p.first_rows[k] + p.costs[k].dim]) for k in p.onsets]
        phase = self._crossing(*read)[1]
        return [ca.densify(ca.jtimes(phase, x, ca.vertcat(*bars), True)) for x in read]


J_AT = 6
"""Place of the Jacobian's entries among what is given: a, v, depth, first, M, f, J, ..."""


def _read(given: Sequence[Var]) -> list[Var]:
    """Return what phases depend on: a, v, depth, J."""
    return [*given[:3], given[J_AT]]
