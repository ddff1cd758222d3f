"""Overlap is undone, and adds no energy: corrections do at most the work that the impulses of the same step take away.

Within the slop, rows that touch are lifted in velocities, slowly (`_targets` of step.py). Where a jam makes much work of that, the
contact problem is solved again without; where it has no solution, impulses that would add energy are made smaller (`Lift`). What is
deeper is undone in positions alone, by a push that is not kept as velocity:

    minimise over w:    w' M w / 2  +  sum over rows of max(t - J w, 0)^2 / (2 SOFT ease)

t is the speed that would undo a part of a row's overlap in the step. The push is soft, so that a row which hardly moves anything (a
straight leg) gets no more than one that moves easily. Friction does not hold against it. The state at the end of the step, with the
push and without it, says what energy it adds: it is made smaller until that is no more than what impulses took.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import factor
from costate.physics.dynamics.energy import kinetic_energy, potential_energy
from costate.sim.contact.hard.law import Block, by_type
from costate.sim.contact.hard.problem import Problem
from costate.sim.contact.hard.solve import TOLERANCE, Solver, nonzeros
from costate.sim.contact.pgs.impact import lossless_part
from costate.sim.forces.tendons import tendon_energy

if TYPE_CHECKING:
    from costate.sim.contact.hard.step import Clock, Prepared, Stages

SOFT = 0.1
"""Softness of the push by the ease of a row: an easy one gets nine tenths of its speed."""
TRIES = 4
"""Number of times that a push is made smaller; if it still adds energy then, it is left out."""
ROUNDING = 4.0
"""Rounding of an energy by the spacing of numbers."""
LESS = 0.9
"""Part of the energy that it may add that a smaller push is made for."""


class Lift:
    """The speeds at which a substep lifts overlap within the slop."""

    def __init__(self, stages: Stages):
        self.stages = stages

    def bounded(self, b: ProgramBuilder, numbers: Sequence[Var], found: Sequence[Var]) -> list[Var]:
        """Add what replaces a solution (v, l, residual), and its targets: these, or those without lifting where that does more work
        than it may; and what is not solved gains no energy. numbers: those of the problem."""
        m, _, j, t, _ = numbers
        works = b.trace(self._works, m, j, t, found[1])
        sizes = [x.size for x in (*numbers, *found)]
        again = ProgramBuilder("without_lift")
        *own, v, impulses, _ = again.inputs(*sizes)
        own[3] = again.trace(self._lowered, own[3])
        grounded = again.program(*self.stages.solver.add(again, own, v, impulses), own[3])
        v, impulses, left, t = b.cond(works, grounded, lambda *given: [*given[-3:], given[3]], *numbers, *found)
        return [*self.lossless(b, [v, impulses, left], numbers), t]

    def lossless(self, b: ProgramBuilder, found: Sequence[Var], numbers: Sequence[Var]) -> list[Var]:
        """Add what replaces a solution that is none: one that gains no energy. numbers: those of the problem."""
        v, impulses, left = found
        unsolved = b.trace(lambda left, spacing: left > by_type(spacing, TOLERANCE), left, b.epsilon())
        m, p, j = numbers[:3]
        kept = b.cond(unsolved, self._smaller, lambda v, impulses, *_: [v, impulses], v, impulses, m, p, j)
        return [*kept, left]

    def _smaller(self, v: SX, impulses: SX, m: SX, p: SX, j: SX) -> list[SX]:
        """Return velocities and impulses, both made smaller until the impulses add no energy."""
        M = factor(self.stages.problem.mass(m))
        free, push = M.solve(p), ca.densify(self.stages.problem.rows(j).T @ impulses)
        change = M.solve(push)
        part = lossless_part(ca.dot(push, free), ca.dot(push, change))
        return [free + part * change, part * impulses]

    def _works(self, m: SX, j: SX, t: SX, impulses: SX) -> SX:
        """Return whether the work of lifting may be more than half of the energy P' M^-1 P / 2 of the impulses' momentum P = J' l.
        The latter is at least (y' P)^2 / (2 y' M y), for any y: no factor of M is needed."""
        p = self.stages.problem
        push = ca.densify(p.rows(j).T @ impulses)
        y = push * ca.DM(p.light)
        return 4 * self.work(impulses, t) * ca.dot(y, p.mass(m) @ y) > ca.dot(y, push) ** 2

    def work(self, impulses: SX, t: SX) -> SX:
        """Return the work of lifting, of the rows whose targets lead away from overlap [J]."""
        striking = self.stages.striking
        return ca.dot(impulses[striking], ca.fmax(t[striking], 0))

    def _lowered(self, t: SX) -> SX:
        lowered = SX(t)
        for k in self.stages.striking:
            lowered[k] = ca.fmin(t[k], 0)
        return lowered


class Correction:
    """The push of a substep's configuration."""

    def __init__(self, stages: Stages):
        self.stages, p = stages, stages.problem
        self.held = list(range(len(stages.rows), stages.n))
        self.rows = [*stages.striking, *self.held]
        blocks = [Block("soft", (i,), SOFT * float(p.ease[k])) for i, k in enumerate(stages.striking)]
        blocks += [Block("hold", (stages.hits + i,), float(p.ease[k])) for i, k in enumerate(self.held)]
        J = SX.sym("j", p.J)[self.rows, :].sparsity()
        self.solver = Solver(Problem(p.M, J, tuple(blocks)))
        s = stages.symbols
        model = s.setup.scene.model
        self.energy = (
            kinetic_energy(model, s.params, s.q, s.v) + potential_energy(model, s.params, s.q) + tendon_energy(s, s.q)
        )

    def add(self, b: ProgramBuilder, found: Prepared, clock: Clock, ends: Sequence[Var], args: Sequence[Var]) -> Var:
        """Add the push to the velocity with which positions move; where nothing overlaps it is left out. ends: that velocity, the
        one at the end of the substep, the impulses between, and their targets; args: inputs of the substep."""
        slop = self.stages.options.slop
        deep = b.trace(lambda gap: ca.mmin(gap) < -slop, found.gap)
        given = [*ends, found.m, found.j, found.gap, found.drift, clock.x, clock.T, clock.tau, *args]
        (v,) = b.cond(deep, self._pushed([x.size for x in given]), lambda v, *_: v, *given)
        return v

    def _pushed(self, sizes: list[int]) -> Program:
        b, o, p = ProgramBuilder("push"), self.stages.options, self.stages.problem
        v, after, impulses, aims, m, j, gap, drift, x, T, tau, *args = b.inputs(*sizes)

        def numbers(j: SX, gap: SX, T: SX, tau: SX) -> list[SX]:
            undo = ca.fmin(ca.fmax(-gap - o.slop, 0) * (o.erp / self.stages.setup.dt), o.max_correction)
            # All of a substep's push goes by in the time that is left of it.
            t = ca.if_else(undo > 0, undo * T / (T - tau), -FAR)
            rows = p.rows(j)
            return [SX.zeros(p.nv), nonzeros(rows[self.rows, :]), ca.vertcat(t, SX.zeros(len(self.held)))]

        momentum, own, t = b.trace(numbers, j, gap, T, tau)
        bounds, still = b.zeros(len(self.rows)), b.zeros(len(self.rows))
        push, _, _ = self.solver.add(b, [m, momentum, own, t, bounds], momentum, still)
        most = b.trace(self._taken, m, j, after, impulses, aims)
        end = [push, v, after, drift, x, T, tau]
        shared = [b.epsilon(), most, self._energy(b, b.zeros(1), end, args), *end, *args]
        found, _ = b.while_loop(
            lambda part, tries, *_: tries, self._try([y.size for y in shared]), TRIES, [b.constant([1.0])] * 2, shared
        )

        def pushed(v: SX, push: SX, part: SX, tries: SX) -> SX:
            return v + ca.if_else(tries, 0, part) * push

        return b.program(b.trace(pushed, v, push, *found))

    def _try(self, sizes: list[int]) -> Program:
        """Return the program (part of the push, whether it was to be tried, spacing of numbers, most, energy without the push, end,
        args) -> the next part, and whether to try it."""
        b = ProgramBuilder("smaller")
        part, _, spacing, most, least, *more = b.inputs(1, 1, *sizes)
        energy = self._energy(b, part, more[:7], more[7:])

        def smaller(part: SX, energy: SX, spacing: SX, least: SX, most: SX) -> list[SX]:
            gain = energy - least
            fits = gain <= most + ROUNDING * spacing * ca.fabs(least)
            return [ca.if_else(fits, part, part * LESS * most / ca.if_else(fits, 1, gain)), ca.if_else(fits, 0, 1)]

        return b.program(*b.trace(smaller, part, energy, spacing, least, most))

    def _taken(self, m: SX, j: SX, v: SX, impulses: SX, t: SX) -> SX:
        """Return the energy that the impulses of a substep take, and lifting does not need [J]. v: velocities after them."""
        p = self.stages.problem
        push = ca.densify(p.rows(j).T @ impulses)
        taken = ca.dot(push, factor(p.mass(m)).solve(push)) / 2 - ca.dot(push, v)
        return ca.fmax(taken - self.stages.lift.work(impulses, t), 0)

    def _energy(self, b: ProgramBuilder, part: Var, end: Sequence[Var], args: Sequence[Var]) -> Var:
        """Add the energy at the end of the substep with a part of the push [J]."""

        def finish(part: SX, push: SX, v: SX, after: SX, drift: SX, x: SX, T: SX, tau: SX) -> SX:
            return self.stages.finish(x, T, tau, v + part * push, drift, after)

        x = b.trace(finish, part, *end)
        return self.stages.symbols.call(b, "energy", [self.energy], self.stages.inputs(b, args, x))[0]


FAR = 1e9
"""Speed that no row has."""
