"""Overlap is undone in positions alone, by a push that is not kept as velocity:

    minimise over w:    w' M w / 2  +  sum over rows of max(t - J w, 0)^2 / (2 SOFT ease)

t is the speed that would undo a part of a row's overlap in the step. Velocities are left alone, so no energy of motion is added.
The push is soft, so that a row which hardly moves anything (a straight leg) gets no more than one that moves easily: the energy of
w is at most the sum of t^2 / (SOFT ease). Friction does not hold against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.sim.contact.hard.law import Block
from costate.sim.contact.hard.problem import Problem
from costate.sim.contact.hard.solve import Solver, nonzeros

if TYPE_CHECKING:
    from costate.sim.contact.hard.step import Clock, Prepared, Stages

SOFT = 0.1
"""Softness of the push by the ease of a row: an easy one gets nine tenths of its speed."""


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

    def add(self, b: ProgramBuilder, found: Prepared, clock: Clock, v: Var) -> Var:
        """Add the push to the velocity with which positions move; where nothing overlaps it is left out."""
        slop = self.stages.options.slop
        deep = b.trace(lambda gap: ca.mmin(gap) < -slop, found.gap)
        given = [found.m, found.j, found.gap, clock.T, clock.tau, v]
        (v,) = b.cond(deep, self._pushed([x.size for x in given]), lambda m, j, gap, T, tau, v: v, *given)
        return v

    def _pushed(self, sizes: list[int]) -> Program:
        b, o, p = ProgramBuilder("push"), self.stages.options, self.stages.problem
        m, j, gap, T, tau, v = b.inputs(*sizes)

        def numbers(j: SX, gap: SX, T: SX, tau: SX) -> list[SX]:
            undo = ca.fmin(ca.fmax(-gap - o.slop, 0) * (o.erp / self.stages.setup.dt), o.max_correction)
            # All of a substep's push goes by in the time that is left of it.
            t = ca.if_else(undo > 0, undo * T / (T - tau), -FAR)
            rows = p.rows(j)
            return [SX.zeros(p.nv), nonzeros(rows[self.rows, :]), ca.vertcat(t, SX.zeros(len(self.held)))]

        momentum, own, t = b.trace(numbers, j, gap, T, tau)
        bounds, still = b.zeros(len(self.rows)), b.zeros(len(self.rows))
        push, _, _ = self.solver.add(b, [m, momentum, own, t, bounds], momentum, still)
        return b.program(b.add(v, push))


FAR = 1e9
"""Speed that no row has."""
