"""The kernel of linearisation: the step around a point, in the tangent space."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.physics.integrate import difference, velocity_map
from costate.sim.setup import Setup
from costate.sim.step import step_inputs, step_program


def linearize(setup: Setup) -> Kernel:
    """Build (state, control, ...) -> the Jacobian of the change of the next state (2 nv + na) by a change of position, velocity,
    activations and control (2 nv + na + nu), and the next state (nx,)."""
    model, nq, nv, ndx = setup.scene.model, setup.nq, setup.nv, setup.ndx

    def changed(x: SX, u: SX, d: SX) -> tuple[SX, SX]:
        """Return state and control after a small change."""
        return x + ca.vertcat(velocity_map(model, x[:nq]) @ d[:nv], d[nv:ndx]), u + d[ndx:]

    def tangent(y: SX, change: SX, dy: SX) -> SX:
        """Return the change that a state's own numbers dy are."""
        q = SX.sym("q", nq)
        along = ca.jtimes(difference(model, q, y[:nq]), y[:nq], dy[:nq])
        return ca.vertcat(ca.substitute(along, q, y[:nq]), dy[nq:])

    b = ProgramBuilder("world.linearize")
    x, u, *shared = step_inputs(b, setup)
    delta = b.input("delta", ndx + setup.nu)
    (after,) = b.call(step_program(setup), *b.trace(changed, x, u, delta), *shared)
    b.output("change", b.custom(lambda y: SX.zeros(ndx), after, tangent=tangent)[0])
    b.output("next", after)
    return b.kernel().derivative("jacobian_at_zero", (len(shared) + 2,), (0, 1))
