"""The time at which contacts and limits begin or end: one more term of the derivative of accelerations, and no value.

The force of a soft constraint is not zero where it begins, and a step knows only whether it acts. So the program is smooth while a
gap g closes within a step, and jumps where it closes one step earlier; its own derivative lacks the jumps, at any step length. With
the phase phi = g / (g' dt), the part of a step since the crossing, the motion's derivative has besides (saltation, s = 1 where a
constraint begins, -1 where it ends):

    da = s (a_on - a_off) dphi          both accelerations at g = 0; half of it in the step before, which closes the gap

What begins or ends in the same step shares one more solution a0, with all of it at g = 0: f_c is the force of block c there,
H_off the Hessian there without these blocks, and

    da = H_off^-1 sum over c of s_c J_c' f_c dphi_c

At grazing 1 / g' has no bound. A force that more than stops a row within a step has no time of its own: s is smaller by as much.
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
from costate.kernel.tracing import Later
from costate.physics.algebra.ltl import Factor, factor
from costate.sim.contact.newton.crossing import bounded, crossing, phase
from costate.sim.contact.newton.problem import Data, Problem
from costate.sim.contact.newton.solve import Solver
from costate.sim.setup import Symbols


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
        tangent, adjoint = Later(lambda: self._tangent(sizes)), Later(lambda: self._adjoint(sizes))
        return b.custom(lambda a, *_: a, *given, tangent=tangent, adjoint=adjoint)[0]

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
class Rows:
    """The rows of a problem, n, and those of its m blocks that may begin or end."""

    problem: Problem

    def all(self, j: SX) -> SX:
        """Return the Jacobian of all rows, (n, nv), from its entries."""
        p = self.problem
        return ca.vertcat(SX(0, p.nv), *(SX(pattern, j[g.nz]) for pattern, g in zip(p.J, p.groups, strict=True)))

    def normals(self, J: SX) -> SX:
        """Return the first rows of what may begin or end, (m, nv)."""
        return ca.vertcat(SX(0, J.shape[1]), *(J[self.problem.first_rows[k], :] for k in self.problem.onsets))

    def rates(self, J: SX, v: SX, a: SX, dt: float) -> tuple[SX, SX]:
        """Return the rates of depths before and after a step, (m,) each."""
        J = self.normals(J)
        return ca.densify(J @ v), ca.densify(J @ (v + dt * a))

    def spread(self, values: SX) -> SX:
        """Return numbers of what may begin or end for every row, (n,); 0 for all others."""
        p, rows = self.problem, SX.zeros(self.problem.n)
        for i, k in enumerate(p.onsets):
            rows[p.first_rows[k] : p.first_rows[k] + p.costs[k].dim] = values[i]
        return rows

    def weighted(self, D: SX, sign: SX, weight: SX) -> SX:
        """Return the weights of all blocks, with these of what begins or ends."""
        weights = ca.vertsplit(D) if D.numel() else []
        for i, k in enumerate(self.problem.onsets):
            weights[k] = ca.if_else(sign[i] != 0, weight[i], weights[k])
        return ca.vertcat(SX(0, 1), *weights)

    def at_zero(self, v: SX, first: SX, j: SX, D: SX, target: SX, sign: SX) -> tuple[SX, SX]:
        """Return weights and targets, those of what begins or ends at depth 0. first: see Data."""
        m = len(self.problem.onsets)
        slowed = -self.spread(first[m:]) * (self.all(j) @ v)
        return self.weighted(D, sign, first[:m]), ca.if_else(self.spread(sign) != 0, slowed, target)

    def left(self, D: SX, sign: SX) -> SX:
        """Return the weights without what begins or ends."""
        return self.weighted(D, sign, SX.zeros(sign.numel()))

    def forces(self, a0: SX, sign: SX, *flat: SX) -> SX:
        """Return the forces of what begins or ends, (n,); 0 for all others. flat: with weights and targets at depth 0."""
        p, d = self.problem, self.problem.data(*flat)
        return ca.if_else(self.spread(sign) != 0, p.force(d, d.deviations(a0)), 0) if p.n else SX(0, 1)


@dataclass(frozen=True, eq=False)
class RowOnsets(Onsets):
    """The term for contacts that are rows of one system, and limits.

    given: a; the step's inputs; the problem's numbers, depths and what holds at depth 0 (see Data).
    """

    s: Symbols
    data: Data
    problem: Problem
    solver: Solver

    @property
    def differentiated(self) -> int:  # type: ignore[override]
        return 1 + len(self.s.inputs)

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.problem)

    def crossings(self, b: ProgramBuilder, given: Sequence[Var]) -> tuple[Var, Var, Var]:
        _, _, j, _, _, _, depth, _ = given[self.differentiated :]
        dt = self.s.setup.dt

        def found(a: SX, v: SX, j: SX, depth: SX) -> tuple[SX, SX, SX]:
            return crossing(depth, *self.rows.rates(self.rows.all(j), v, a, dt), dt)

        return b.trace(found, given[0], velocity(b, self.s, given), j, depth)  # type: ignore[return-value]

    def jump(self, sizes: Sequence[int]) -> Program:
        b, m = ProgramBuilder("jump"), len(self.problem.onsets)
        *given, sign, speed = b.inputs(*sizes, m, m)
        mass, f, j, D, target, mu, _, first = given[self.differentiated :]
        D0, target0 = b.trace(self.rows.at_zero, velocity(b, self.s, given), first, j, D, target, sign)
        a0 = self.solver.near(b, given[0], [mass, f, j, D0, target0, mu])
        return b.program(*b.trace(self._pushes, a0, sign, speed, D0, target0, mass, f, j, D, target, mu))

    def _pushes(self, a0: SX, sign: SX, speed: SX, D0: SX, target0: SX, *flat: SX) -> tuple[SX, SX]:
        """Return the forces at a0 of what begins or ends times their bounded signs, (n,), and the factors of H_off."""
        p, rows, (m, f, j, D, target, mu) = self.problem, self.rows, flat
        force = rows.forces(a0, sign, m, f, j, D0, target0, mu)
        off = p.data(m, f, j, rows.left(D, sign), target, mu)
        H, J = factor(p.hessian(off, off.deviations(a0))), rows.all(j)
        change = rows.normals(J) @ H.solve(ca.densify(J.T @ force))
        return force * rows.spread(bounded(sign, speed, change, self.s.setup.dt)), H.flat()

    def term(self, sizes: Sequence[int], jump: Sequence[int]) -> Program:
        b, m = ProgramBuilder("term"), len(self.problem.onsets)
        *given, push, factors, sign, past = b.inputs(*sizes, *jump, m, m)
        phi = phases(b, self.s, self.data, self.rows, given, sign, past)

        def shift(j: SX, push: SX, factors: SX, phi: SX) -> SX:
            return self._factor.filled(factors).solve(ca.densify(self.rows.all(j).T @ (push * self.rows.spread(phi))))

        return b.program(b.trace(shift, given[self.differentiated + 2], push, factors, phi))

    @cached_property
    def _factor(self) -> Factor:
        """Factors of a Hessian, for their zeros."""
        p = self.problem
        bends = (SX(p.patterns(g)[0], 1) for g in p.groups)
        return factor(SX.sym("H", sum(bends, SX(p.M, 1)).sparsity()))


def velocity(b: ProgramBuilder, s: Symbols, given: Sequence[Var]) -> Var:
    """Return the velocities (nv,) of what is given: a, state, ..."""
    return b.slice(given[1], s.setup.nq, s.setup.nv)


def phases(b: ProgramBuilder, s: Symbols, data: Data, rows: Rows, given: Sequence[Var], sign: Var, past: Var) -> Var:
    """Add the phases of the blocks that may begin or end, (m,), from a and the step's inputs."""
    a, signs, pasts = (SX.sym(name, n) for name, n in (("a", s.setup.nv), ("sign", sign.size), ("past", past.size)))
    rates, dt = rows.rates(ca.vertcat(SX(0, s.setup.nv), *data.J), s.v, a, s.setup.dt), s.setup.dt
    found = phase(data.depth, *rates, signs, pasts, dt)
    more = {given[0]: a, sign: signs, past: pasts}
    return s.call(b, "phase", [found], given[1 : 1 + len(s.inputs)], more)[0]
