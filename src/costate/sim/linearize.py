"""The kernel of linearisation: the step around a point, in the tangent space."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.physics.integrate import difference, velocity_map
from costate.sim.setup import Setup
from costate.sim.step import step_inputs, step_program


def linearize(setup: Setup) -> Kernel:
    """Build (state, control, ..., delta (2 nv + na + nu)) -> the Jacobian of the change of the next state (2 nv + na) by a change
    delta of position, velocity, activations and control, and the next state (nx,). The values of delta are not looked at."""
    model, nq, nv, ndx = setup.scene.model, setup.nq, setup.nv, setup.ndx

    # Both maps between states and changes are given by their derivatives where the change is zero.
    def moved(x: SX, u: SX, d: SX, x_: SX, u_: SX, dx: SX, du: SX, dd: SX) -> tuple[SX, SX]:
        return dx + ca.vertcat(velocity_map(model, x[:nq]) @ dd[:nv], dd[nv:ndx]), du + dd[ndx:]

    def changed(y: SX, change: SX, dy: SX) -> SX:
        q = SX.sym("q", nq)
        along = ca.jtimes(difference(model, q, y[:nq]), y[:nq], dy[:nq])
        return ca.vertcat(ca.substitute(along, q, y[:nq]), dy[nq:])

    b = ProgramBuilder("world.linearize")
    x, u, *shared = step_inputs(b, setup)
    (delta,) = b.inputs(delta=ndx + setup.nu)
    (after,) = b.call(step_program(setup), *b.custom(lambda x, u, d: (x, u), x, u, delta, tangent=moved), *shared)
    b.output("change", b.custom(lambda y: SX.zeros(ndx), after, tangent=changed)[0])
    b.output("next", after)
    return b.kernel().derivative("jacobian", (len(shared) + 2,), (0, 1))
