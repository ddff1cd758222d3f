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

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.fork import cached_property
from costate.kernel import ProgramBuilder
from costate.kernel.ir.derive import jvp, vjp
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import Factor, factor
from costate.sim.contact.newton.problem import Data, Problem
from costate.sim.contact.newton.solve import Solver
from costate.sim.setup import Symbols

TINY = 1e-30
"""Acceleration in place of none, where one is divided by [m/s^2]."""


def crossing(depth: SX, rate: SX, after: SX, dt: float) -> tuple[SX, SX, SX]:
    """Return how depths cross 0 in the step that ended, or else in this one: half the sign (1/2 begins, -1/2 ends, 0 neither),
    whether it is the step that ended, and the speed. rate, after: rates of the depths before and after the step; all (n,)."""
    begins, ends = ca.logic_and(depth < 0, depth > rate * dt), ca.logic_and(depth >= 0, depth < rate * dt)
    past = ca.logic_or(begins, ends)
    to = depth + dt * after
    begins_now, ends_now = ca.logic_and(depth >= 0, to < 0), ca.logic_and(depth < 0, to >= 0)
    sign = ca.if_else(past, begins - ends, begins_now - ends_now) / 2
    return sign, past, ca.fabs(ca.if_else(past, rate, after))


def phase(depth: SX, rate: SX, after: SX, sign: SX, past: SX, dt: float) -> SX:
    """Return the part of a step since the crossing, at the step's start or at its end; 0 where there is none."""
    way = ca.if_else(past, rate, after) * dt
    at = ca.if_else(past, depth, depth + dt * after)
    return ca.if_else(sign != 0, at / ca.if_else(sign != 0, way, 1), 0)


def bounded(sign: SX, speed: SX, change: SX, dt: float) -> SX:
    """Return signs, smaller where a force changes the row's speed by more than the speed within a step. change: acceleration of
    the rows by the forces of all that begins or ends."""
    return sign * speed / ca.fmax(ca.fmax(speed, dt * ca.fabs(change)), TINY)


class Onsets(ABC):
    """The term in the derivative of accelerations. What is given begins with a (nv,); derivatives are by the first ones of it."""

    differentiated: int
    """Number of what is given that derivatives are by; the rest follows from it, and is kept by the step."""

    @abstractmethod
    def crossings(self, b: ProgramBuilder, given: Sequence[Var]) -> tuple[Var, Var, Var]:
        """Add signs, whether crossings are past, and speeds, of all that may begin or end: see `crossing`."""

    @abstractmethod
    def jump(self, sizes: Sequence[int]) -> Program:
        """Build (given, signs, speeds) -> what `term` needs of a0: forces times signs, the Hessian without what begins or ends."""

    @abstractmethod
    def term(self, sizes: Sequence[int], jump: Sequence[int]) -> Program:
        """Build (given, jump, signs, past) -> H_off^-1 sum of s J' f phi (nv,), whose derivative by what is differentiated is the
        term."""

    def timed(self, b: ProgramBuilder, given: Sequence[Var]) -> Var:
        """Add accelerations whose derivative has the term."""
        sizes = [x.size for x in given]
        return b.custom(lambda a, *_: a, *given, tangent=self._tangent(sizes), adjoint=self._adjoint(sizes))[0]

    def _tangent(self, sizes: list[int]) -> Program:
        """Build (given, a, tangents of the given) -> tangent of a."""
        n = self.differentiated
        b = ProgramBuilder("onset_tangent")
        values = b.inputs(*sizes, sizes[0], *sizes)
        given, dots = values[: len(sizes)], values[len(sizes) + 1 :][:n]
        flag, read, term = self._at(b, given)
        (shift,) = b.cond(flag, jvp(term, range(n)), lambda *_: SX.zeros(sizes[0]), *read, *dots)
        return b.program(b.add(dots[0], shift))

    def _adjoint(self, sizes: list[int]) -> Program:
        """Build (given, a, seed) -> gradients of the given."""
        n = self.differentiated
        b = ProgramBuilder("onset_adjoint")
        *given, _, seed = b.inputs(*sizes, sizes[0], sizes[0])
        flag, read, term = self._at(b, given)
        none = [SX.zeros(k) for k in sizes[:n]]
        of_a, *rest = b.cond(flag, vjp(term, range(n), [0]), lambda *_: none, *read, seed)
        return b.program(b.add(seed, of_a), *rest, *(b.zeros(k) for k in sizes[n:]))

    def _at(self, b: ProgramBuilder, given: Sequence[Var]) -> tuple[Var, list[Var], Program]:
        """Add whether anything begins or ends, and what the program of the term reads; return these and the program."""
        sign, past, speed = self.crossings(b, given)
        flag = b.trace(lambda s: ca.mmax(ca.fabs(s)) > 0, sign)
        sizes = [x.size for x in given]
        jump = self.jump(sizes)
        found = b.cond(flag, jump, lambda *_: [SX.zeros(k) for k in jump.out_sizes], *given, sign, speed)
        return flag, [*given, *found, sign, past], self.term(sizes, jump.out_sizes)


@dataclass(frozen=True, eq=False)
class RowOnsets(Onsets):
    """The term for contacts that are rows of one system, and limits. There are n rows, and m blocks that may begin or end.

    given: a; the step's inputs; the problem's numbers, depths and what holds at depth 0 (see Data).
    """

    s: Symbols
    data: Data
    problem: Problem
    solver: Solver

    @property
    def differentiated(self) -> int:  # type: ignore[override]
        return 1 + len(self.s.inputs)

    @property
    def dt(self) -> float:
        return self.s.setup.dt

    def crossings(self, b: ProgramBuilder, given: Sequence[Var]) -> tuple[Var, Var, Var]:
        _, _, j, _, _, _, depth, _ = given[self.differentiated :]
        v = self._velocity(b, given)

        def found(a: SX, v: SX, j: SX, depth: SX) -> tuple[SX, SX, SX]:
            J = self._normals(self._rows(j))
            return crossing(depth, ca.densify(J @ v), ca.densify(J @ (v + self.dt * a)), self.dt)

        return b.trace(found, given[0], v, j, depth)  # type: ignore[return-value]

    def jump(self, sizes: Sequence[int]) -> Program:
        b, m = ProgramBuilder("jump"), len(self.problem.onsets)
        *given, sign, speed = b.inputs(*sizes, m, m)
        mass, f, j, D, target, mu, _, first = given[self.differentiated :]
        D0, target0 = b.trace(self._at_zero, self._velocity(b, given), first, j, D, target, sign)
        a0 = self.solver.near(b, given[0], [mass, f, j, D0, target0, mu])
        return b.program(*b.trace(self._pushes, a0, sign, speed, D0, target0, mass, f, j, D, target, mu))

    def term(self, sizes: Sequence[int], jump: Sequence[int]) -> Program:
        b, s, m = ProgramBuilder("term"), self.s, len(self.problem.onsets)
        *given, push, factors, sign, past = b.inputs(*sizes, *jump, m, m)
        a, signs, pasts = SX.sym("a", s.setup.nv), SX.sym("sign", m), SX.sym("past", m)
        J = self._normals(ca.vertcat(*self.data.J))
        phi = phase(self.data.depth, J @ s.v, J @ (s.v + self.dt * a), signs, pasts, self.dt)
        (phi,) = s.call(b, "phase", [phi], given[1 : self.differentiated], {given[0]: a, sign: signs, past: pasts})

        def shift(j: SX, push: SX, factors: SX, phi: SX) -> SX:
            return self._factor.filled(factors).solve(ca.densify(self._rows(j).T @ (push * self._per_row(phi))))

        return b.program(b.trace(shift, given[self.differentiated + 2], push, factors, phi))

    # --- rows and blocks ------------------------------------------------------------------------------------------

    def _velocity(self, b: ProgramBuilder, given: Sequence[Var]) -> Var:
        return b.slice(given[1], self.s.setup.nq, self.s.setup.nv)

    def _rows(self, j: SX) -> SX:
        """Return the Jacobian of all rows, (n, nv), from its entries."""
        p = self.problem
        return ca.vertcat(*(SX(pattern, j[g.nz]) for pattern, g in zip(p.J, p.groups, strict=True)))

    def _normals(self, J: SX) -> SX:
        """Return the first rows of what may begin or end, (m, nv)."""
        return J[[self.problem.first_rows[k] for k in self.problem.onsets], :]

    def _per_row(self, values: SX) -> SX:
        """Return numbers of what may begin or end for every row, (n,); 0 for all others."""
        p, rows = self.problem, SX.zeros(self.problem.n)
        for i, k in enumerate(p.onsets):
            rows[p.first_rows[k] : p.first_rows[k] + p.costs[k].dim] = values[i]
        return rows

    # --- the jump -------------------------------------------------------------------------------------------------

    def _at_zero(self, v: SX, first: SX, j: SX, D: SX, target: SX, sign: SX) -> tuple[SX, SX]:
        """Return weights and targets, those of what begins or ends at depth 0."""
        weight, damping = ca.vertsplit(first, len(self.problem.onsets))
        slowed = -self._per_row(damping) * (self._rows(j) @ v)
        return self._with(D, sign, weight), ca.if_else(self._per_row(sign) != 0, slowed, target)

    def _with(self, D: SX, sign: SX, weight: SX) -> SX:
        """Return the weights of all blocks, with these of what begins or ends."""
        weights = ca.vertsplit(D)
        for i, k in enumerate(self.problem.onsets):
            weights[k] = ca.if_else(sign[i] != 0, weight[i], weights[k])
        return ca.vertcat(*weights)

    def _pushes(self, a0: SX, sign: SX, speed: SX, D0: SX, target0: SX, *flat: SX) -> tuple[SX, SX]:
        """Return the forces at a0 of what begins or ends times their bounded signs, (n,), and the factors of H_off."""
        p, (m, f, j, D, target, mu) = self.problem, flat
        on = p.data(m, f, j, D0, target0, mu)
        force = ca.if_else(self._per_row(sign) != 0, p.force(on, on.deviations(a0)), 0)
        off = p.data(m, f, j, self._with(D, sign, SX.zeros(sign.numel())), target, mu)
        H = factor(p.hessian(off, off.deviations(a0)))
        J = self._rows(j)
        change = self._normals(J) @ H.solve(ca.densify(J.T @ force))
        return force * self._per_row(bounded(sign, speed, change, self.dt)), H.flat()

    @cached_property
    def _factor(self) -> Factor:
        """Factors of a Hessian, for their zeros."""
        p = self.problem
        bends = (SX(p.patterns(g)[0], 1) for g in p.groups)
        return factor(SX.sym("H", sum(bends, SX(p.M, 1)).sparsity()))
