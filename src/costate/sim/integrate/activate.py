"""Activations of actuators over a substep: the part of the state that follows the controls, whatever the bodies do.

The substep of a contact model gives positions and velocities; here the activations after it are added to them.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program
from costate.sim.forces.general import activated, rates
from costate.sim.integrate.rk4 import TABLEAU
from costate.sim.setup import Setup


def whole_substep(setup: Setup) -> Program:
    """Build (x, carry, u, parameters, wrenches) -> (x', carry', impulses, residual), where x' is a whole state."""
    substep = setup.contact.substep(setup)
    if not setup.na:
        return substep
    b = ProgramBuilder("substep")
    x, carry, u, *rest = b.inputs(*substep.in_sizes)
    moved, *more = b.call(substep, x, carry, u, *rest)
    start = setup.nq + setup.nv
    whole = b.trace(lambda x, u, moved: ca.vertcat(moved, _after(setup, x[start:], u)), x, u, moved)
    return b.program(whole, *more)


def _after(setup: Setup, act: SX, u: SX) -> SX:
    """Return the activations after a substep, (na,)."""
    rate = rates(setup, act, u)
    if setup.method.stages > 1:
        at, mean = act, SX(0)
        for weight, part in TABLEAU:
            rate = rates(setup, at, u)
            mean = mean + weight * rate
            at = act + part * setup.dt * rate
        rate = mean
    pairs = enumerate(activated(setup))
    return ca.vertcat(*(actuator.after(act[n], rate[n], setup.dt) for n, (_, actuator) in pairs))
