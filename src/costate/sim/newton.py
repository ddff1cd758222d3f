"""Soft contact as MuJoCo defines it: the step of a world with the `Newton` contact model.

prepare:  masses, forces, constraints          newton_rows.py, newton_places.py
solve:    accelerations, to tolerance          newton_solve.py, newton_cost.py
finish:   velocities and positions after the step, implicit in joint damping
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.program import Program
from costate.physics.crba import crba
from costate.physics.ltl import factor
from costate.physics.passive import Passive
from costate.physics.rnea import rnea
from costate.sim.advance import advance, turning
from costate.sim.contact_models import Newton
from costate.sim.motion import actuate, per_velocity
from costate.sim.newton_cost import Cost
from costate.sim.newton_rows import blocks, resolved
from costate.sim.newton_solve import Data, Solver, pack
from costate.sim.setup import Setup, Symbols


def newton_step(setup: Setup) -> Program:
    """One substep as a program: (x, u, parameters, wrenches) -> (x', impulses along the rows of all constraints)."""
    contact = setup.contact
    assert isinstance(contact, Newton)
    s = Symbols(setup)
    data, solver = make_problem(s, contact)
    b = ProgramBuilder("step")
    args = [b.input(f"i{k}", x.numel()) for k, x in enumerate(s.inputs)]
    numbers = s.call(b, "prepare", data.flat(), args)
    if solver.costs:
        tangent, adjoint = solver.derivatives()
        (a,) = b.custom(solver.program(), *numbers, tangent=tangent, adjoint=adjoint)
    else:
        (a,) = b.call(_free(solver), *numbers)
    b.output("x", b.call(_finish(s, solver), *args, numbers[0], a)[0])
    b.output("impulses", b.call(_impulses(solver, setup.dt), *numbers, a)[0])
    return b.program()


def make_problem(s: Symbols, contact: Newton) -> tuple[Data, Solver]:
    """The problem of a step: its numbers as expressions of the inputs, and what is constant about it."""
    model = s.setup.scene.model
    M = crba(model, s.params, s.q)
    passive = Passive(friction=not contact.joint_friction)
    bias = rnea(model, s.params, s.q, s.v, SX(model.nv, 1), s.wrenches, passive)
    # Accelerations are those in axes that stand still, see advance.py.
    f = actuate(s, s.q, s.v, s.u, M, bias) - bias + M @ turning(model, s.v)
    options = resolved(s)
    found = blocks(s, s.contacts(), options)
    J = ca.sparsify(ca.vertcat(*(b.J for b in found))) if found else SX(0, model.nv)
    friction, mu = pack([b.friction for b in found])
    D, target = ca.vertcat(*(b.weight for b in found)), ca.vertcat(*(b.target for b in found))
    lower = ca.tril(M)
    costs = tuple(Cost(b.kind, b.dim, options.cone, options.impratio) for b in found)
    data = Data(lower, f, J, D, target, mu)
    return data, Solver(lower.sparsity(), J.sparsity(), costs, friction, contact)


def _free(solver: Solver) -> ca.Function:
    d = solver.symbols
    return ca.Function("free", solver.inputs, [factor(d.M + ca.tril(d.M, False).T).solve(d.f)])


def _finish(s: Symbols, solver: Solver) -> ca.Function:
    """The next state. At the solution M a is the sum of all forces; damping acts on the velocity after the step."""
    setup = s.setup
    contact = setup.contact
    assert isinstance(contact, Newton)
    a = SX.sym("a", setup.nv)
    lower = solver.symbols.M
    acceleration = a
    damping = per_velocity(s, "damping")
    if contact.implicit_damping and not (damping.is_constant() and ca.norm_inf(ca.DM(damping)) == 0):
        M = lower + ca.tril(lower, False).T
        acceleration = factor(M + setup.dt * ca.diag(damping)).solve(M @ a)
    after = s.v + setup.dt * acceleration
    x = advance(setup.scene.model, s.q, after, after, setup.dt)
    return ca.Function("finish", [*s.inputs, solver.inputs[0], a], [x])


def _impulses(solver: Solver, dt: float) -> ca.Function:
    a, d = SX.sym("a", solver.nv), solver.symbols
    forces = solver.force(d.J @ a - d.target) if solver.costs else SX.zeros(1)
    return ca.Function("impulses", [*solver.inputs, a], [dt * ca.densify(forces)])
