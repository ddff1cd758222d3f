"""Soft contact as MuJoCo defines it: the substep of a world with the `Newton` contact model.

look      contact points                       points.py
prepare   masses, forces, constraints          rows.py, softness.py, weights.py
solve     accelerations, to tolerance          problem.py, solve.py, cost.py
          the same, pair by pair               pairwise/
          derivative of the time at which contacts and limits begin or end     onset.py
finish    next state, implicit in damping      finish.py; or four stages of all this (integrate/rk4.py)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.algebra.ltl import factor
from costate.physics.dynamics.crba import crba
from costate.sim.contact.detect import Contact
from costate.sim.contact.model import substep_inputs
from costate.sim.contact.newton.finish import finish, turning_force
from costate.sim.contact.newton.onset import RowOnsets
from costate.sim.contact.newton.pairwise.step import PairStep, is_pairwise
from costate.sim.contact.newton.problem import Data, Problem, make_problem
from costate.sim.contact.newton.rows import blocks
from costate.sim.contact.newton.solve import Solver
from costate.sim.forces.torques import actuate
from costate.sim.integrate.bias import bias_forces
from costate.sim.integrate.rk4 import runge_kutta
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton


def newton_substep(options: Newton, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`.

    residual: largest generalised force [N or N m] that is not balanced, (1,).
    """
    s = Symbols(setup)
    pairwise = is_pairwise(options, setup)
    data, problem = problem_of(s, options, [] if pairwise else s.contacts())
    step = (PairStep if pairwise else DenseStep)(s, options, data, problem)
    solve = step.acceleration()
    b = ProgramBuilder("substep")
    carry, args = substep_inputs(b, s)
    a, *numbers = b.call(solve, *args)
    if setup.method.stages > 1:
        only_a = Program(solve.inputs, solve.stages, solve.outputs[:1])
        x = runge_kutta(b, setup, only_a, args)
    else:
        x = finish(b, s, problem, options, args, numbers[0], a)
    impulses = b.trace(lambda forces: setup.dt * forces, step.forces(b, numbers, a))
    return b.program(x, carry, impulses, step.residual(b, numbers, a))


@dataclass(frozen=True, eq=False)
class DenseStep:
    """The parts of a substep whose contacts are rows of one system; `PairStep` has the same methods."""

    s: Symbols
    options: Newton
    data: Data
    problem: Problem

    def acceleration(self) -> Program:
        """Build the program (x, u, parameters, wrenches) -> (accelerations (nv,), the problem's numbers)."""
        b, s, problem, options = ProgramBuilder("acceleration"), self.s, self.problem, self.options
        args = b.inputs(*(x.numel() for x in s.inputs))
        numbers = s.call(b, "prepare", [*self.data.flat(), self.data.depth, self.data.first], args)
        timed, numbers = [*args, *numbers], numbers[:-2]
        if problem.n:
            solver = Solver(problem, options.iterations, options.tolerance, options.line_search)
            a = solver.solve(b, numbers)
            if problem.onsets and options.event_times:
                a = RowOnsets(s, self.data, problem, solver).timed(b, [a, *timed])
        else:
            a = b.trace(problem.free, *numbers[:2])
        return b.program(a, *numbers)

    def forces(self, b: ProgramBuilder, numbers: list[Var], a: Var) -> Var:
        """Add the forces along the rows, in the order in which the constraints were found."""
        p = self.problem

        def found(*given: SX) -> SX:
            *flat, a = given
            d = p.data(*flat)
            return p.force(d, d.deviations(a))[list(p.order)] if p.n else SX.zeros(1)

        return b.trace(found, *numbers, a)

    def residual(self, b: ProgramBuilder, numbers: list[Var], a: Var) -> Var:
        """Add the largest generalised force that is not balanced."""
        p = self.problem

        def left(*given: SX) -> SX:
            *flat, a = given
            d = p.data(*flat)
            return ca.mmax(ca.fabs(p.gradient(d, a, d.deviations(a)))) if p.n else SX.zeros(1)

        return b.trace(left, *numbers, a)


def problem_of(s: Symbols, options: Newton, contacts: list[Contact]) -> tuple[Data, Problem]:
    """Return the problem of a step with these contacts; `options` leaves neither cone nor impratio open."""
    assert options.cone is not None and options.impratio is not None
    model = s.setup.scene.model
    M = crba(model, s.params, s.q)
    bias = bias_forces(s, s.q, s.v, M, factor(M), not options.joint_friction).force
    # Accelerations are those in axes that stand still, see advance.py.
    f = actuate(s, s.q, s.v, s.u, M, bias) - bias + turning_force(s, M)
    return make_problem(M, f, blocks(s, contacts, options), options.cone, options.impratio)
