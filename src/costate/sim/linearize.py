"""The kernel of linearisation: the step around a point, in the tangent space."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.physics.integrate import difference, integrate
from costate.sim.setup import Setup, Symbols
from costate.sim.step import step_inputs, step_program


def linearization_kernel(setup: Setup) -> Kernel:
    """Build (state, control, ..., next, delta (2 nv + nu)) -> change of the next state (2 nv).

    next: the state after the step; delta: changes of position, velocity and control.
    """
    s = Symbols(setup)
    model, nq, nv = setup.scene.model, setup.nq, setup.nv
    b = ProgramBuilder("world.linearize")
    x, u, *shared = step_inputs(b, setup)
    nominal = b.input("next", setup.nx)
    delta = b.input("delta", 2 * nv + setup.nu)
    d, control = SX.sym("d", 2 * nv + setup.nu), SX.sym("u", setup.nu)
    moved = ca.vertcat(integrate(model, s.q, d[:nv]), s.v + d[nv : 2 * nv])
    pushed = control + d[2 * nv :]
    start, pushed_u = b.call(ca.Function("perturb", [s.x, control, d], [moved, ca.densify(pushed)]), x, u, delta)
    (after,) = b.call(step_program(setup), start, pushed_u, *shared)
    y = SX.sym("y", setup.nx)
    change = ca.vertcat(difference(model, s.x[:nq], y[:nq]), y[nq:] - s.x[nq:])
    b.output("change", b.call(ca.Function("deviation", [s.x, y], [change]), nominal, after)[0])
    return b.kernel()
