"""The kernel of linearisation: the step around a point, in the tangent space."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.physics.integrate import difference, integrate
from costate.sim.setup import Setup
from costate.sim.step import step_inputs, step_program


def _deviation(setup: Setup) -> Kernel:
    """Build (state, control, ..., next, delta (2 nv + na + nu)) -> change of the next state (2 nv + na).

    next: the state after the step; delta: changes of position, velocity, activations and control.
    """
    model, nq, nv, ndx = setup.scene.model, setup.nq, setup.nv, setup.ndx

    def perturbed(x: SX, u: SX, d: SX) -> tuple[SX, SX]:
        return ca.vertcat(integrate(model, x[:nq], d[:nv]), x[nq:] + d[nv:ndx]), u + d[ndx:]

    def deviation(x: SX, y: SX) -> SX:
        return ca.vertcat(difference(model, x[:nq], y[:nq]), y[nq:] - x[nq:])

    b = ProgramBuilder("world.linearize")
    x, u, *shared = step_inputs(b, setup)
    nominal, delta = b.inputs(next=setup.nx, delta=ndx + setup.nu)
    (after,) = b.call(step_program(setup), *b.trace(perturbed, x, u, delta), *shared)
    b.output("change", b.trace(deviation, nominal, after))
    return b.kernel()


def linearize(setup: Setup) -> Kernel:
    """Build (state, control, ..., next, delta = 0) -> the Jacobian of that change, (2 nv + na, 2 nv + na + nu)."""
    kernel = _deviation(setup)
    last = len(kernel.signature.inputs) - 1
    return kernel.derivative("jacobian", (last,), (0,))


def linearize_one(setup: Setup) -> Kernel:
    """Build the same for one sample at a time."""
    return linearize(setup).narrow
