"""Soft contact as MuJoCo defines it: the substep of a world with the `Newton` contact model.

prepare:  masses, forces, constraints          rows.py, points.py, weights.py
solve:    accelerations, to tolerance          problem.py, solve.py, cost.py
finish:   next state, implicit in damping      finish.py; or four stages of all this (integrate/rk4.py)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.passive import Passive
from costate.physics.dynamics.rnea import rnea
from costate.sim.contact.model import substep_inputs
from costate.sim.contact.newton.finish import finish, turning_force
from costate.sim.contact.newton.problem import Data, Problem, make_problem
from costate.sim.contact.newton.rows import blocks
from costate.sim.contact.newton.solve import Solver, derivatives
from costate.sim.forces.surroundings import wrenches
from costate.sim.forces.tendons import tendon_forces
from costate.sim.forces.torques import actuate
from costate.sim.integrate.rk4 import runge_kutta
from costate.sim.setup import Setup, Symbols

if TYPE_CHECKING:
    from costate.sim.contact.newton.model import Newton


def newton_substep(options: Newton, setup: Setup) -> Program:
    """Build the program of one substep: see model.py of the package `contact`.

    residual: largest generalised force [N or N m] that is not balanced, (1,).
    """
    s = Symbols(setup)
    data, problem = problem_of(s, options)
    solve = _acceleration(s, data, problem, options)
    b = ProgramBuilder("substep")
    carry, args = substep_inputs(b, s)
    a, *numbers = b.call(solve, *args)
    if setup.method.stages > 1:
        only_a = Program(solve.inputs, solve.stages, solve.outputs[:1])
        x = runge_kutta(b, setup, only_a, args)
    else:
        (x,) = b.call(finish(s, problem, options), *args, numbers[0], a)
    impulses = b.trace(lambda *given: setup.dt * _forces(problem, *given), *numbers, a)
    return b.program(x, carry, impulses, b.trace(lambda *given: _residual(problem, *given), *numbers, a))


def _acceleration(s: Symbols, data: Data, problem: Problem, options: Newton) -> Program:
    """Build the program (x, u, parameters, wrenches) -> (accelerations (nv,), the problem's numbers)."""
    b = ProgramBuilder("acceleration")
    args = b.inputs(*(x.numel() for x in s.inputs))
    numbers = s.call(b, "prepare", data.flat(), args)
    if problem.n:
        solver = Solver(problem, options.iterations, options.tolerance, options.line_search)
        tangent, adjoint = derivatives(problem)
        (a,) = b.custom(solver.program(), *numbers, tangent=tangent, adjoint=adjoint)
    else:
        a = b.trace(problem.free, *numbers[:2])
    return b.program(a, *numbers)


def problem_of(s: Symbols, options: Newton) -> tuple[Data, Problem]:
    """Return the problem of a step; `options` leaves neither cone nor impratio open."""
    assert options.cone is not None and options.impratio is not None
    model = s.setup.scene.model
    M = crba(model, s.params, s.q)
    passive = Passive(friction=not options.joint_friction)
    bias = rnea(model, s.params, s.q, s.v, SX(model.nv, 1), wrenches(s, s.q, s.v), passive)
    bias = bias - tendon_forces(s, s.q, s.v, not options.joint_friction)
    # Accelerations are those in axes that stand still, see advance.py.
    f = actuate(s, s.q, s.v, s.u, M, bias) - bias + turning_force(s, M)
    return make_problem(M, f, blocks(s, s.contacts(), options), options.cone, options.impratio)


def _forces(problem: Problem, *given: SX) -> SX:
    """Return the forces along the rows, in the order in which the constraints were found. given: flat data, accelerations."""
    *flat, a = given
    d = problem.data(*flat)
    return problem.force(d, d.deviations(a))[list(problem.order)] if problem.n else SX.zeros(1)


def _residual(problem: Problem, *given: SX) -> SX:
    """Return the largest generalised force that is not balanced. given: flat data, accelerations."""
    *flat, a = given
    d = problem.data(*flat)
    return ca.mmax(ca.fabs(problem.gradient(d, a, d.deviations(a)))) if problem.n else SX.zeros(1)
