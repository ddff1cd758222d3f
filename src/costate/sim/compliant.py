"""Soft contact: forces that are smooth functions of positions and velocities."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
from casadi import SX

from costate.kernel.program import Program
from costate.kernel.stages.straight import as_program
from costate.physics.integrate import integrate, velocity_map
from costate.sim.advance import advance
from costate.sim.constraints import constraint_rows
from costate.sim.contact_models import Compliant
from costate.sim.motion import Free, free_motion
from costate.sim.setup import Setup, Symbols


def smooth_step(setup: Setup) -> Program:
    """One substep of a world without hard contact: (x, u, parameters, wrenches) -> (x', impulses of all rows)."""
    s = Symbols(setup)
    dt, model = setup.dt, setup.scene.model

    def free(q: SX, v: SX) -> Free:
        return free_motion(s, q, v, s.u, contact_forces(s, q, v)[0])

    if setup.integrator == "rk4":
        x = _runge_kutta(s, lambda q, v: free(q, v).acceleration)
    else:
        after = free(s.q, s.v).velocity
        x = advance(model, s.q, s.v if setup.integrator == "explicit" else after, after, dt)
    forces = contact_forces(s, s.q, s.v)[1]
    return as_program(ca.Function("step", s.inputs, [x, dt * ca.densify(forces)]))


def _runge_kutta(s: Symbols, acceleration: Callable[[SX, SX], SX]) -> SX:
    """The classical method on coordinates, dq/dt = N(q) v; quaternions leave the unit sphere at the order of the method's error and
    are brought back at the end."""
    dt, model, nq = s.setup.dt, s.setup.scene.model, s.setup.nq
    slopes: list[SX] = []
    for part in (0.0, 0.5, 0.5, 1.0):
        x = s.x + part * dt * slopes[-1] if slopes else s.x
        q, v = x[:nq], x[nq:]
        slopes.append(ca.vertcat(velocity_map(model, q) @ v, acceleration(q, v)))
    x = s.x + dt * (ca.horzcat(*slopes) @ ca.DM([1 / 6, 1 / 3, 1 / 3, 1 / 6]))
    return ca.vertcat(integrate(model, x[:nq], SX(s.setup.nv, 1)), x[nq:])


def contact_forces(s: Symbols, q: SX, v: SX) -> tuple[SX | None, SX]:
    """Generalised forces of contacts and joint limits (nv,), and the force [N or N m] along each row."""
    options = s.setup.contact
    rows = [] if options is None else constraint_rows(s, q, s.contacts(q), s.setup.dt)
    if not rows:
        return None, SX.zeros(1)
    assert isinstance(options, Compliant)
    total = SX(s.setup.nv, 1)
    forces: list[SX] = []
    sliding = _sliding_speeds(rows, v, options)
    for row in rows:
        speed = (row.J @ v)[0]
        if row.kind in ("normal", "limit"):
            forces.append(_normal_force(s, row.kind, row.gap, speed, options))
        else:
            assert row.bound is not None
            forces.append(-row.bound * forces[row.contact] * speed / sliding[row.contact])
        total = total + row.J.T * forces[-1]
    return total, ca.vertcat(*forces)


def _sliding_speeds(rows, v: SX, options: Compliant) -> dict[int, SX]:
    squares: dict[int, SX] = {}
    for row in rows:
        if row.kind == "tangent":
            squares[row.contact] = squares.get(row.contact, SX(options.friction_speed**2)) + (row.J @ v)[0] ** 2
    return {k: ca.sqrt(x) for k, x in squares.items()}


def _normal_force(s: Symbols, kind: str, gap: SX, speed: SX, options: Compliant) -> SX:
    """stiffness * depth * (1 - damping * speed), never pulling; the depth fades in over the smoothing length."""
    stiffness = s.contact_value("stiffness") if kind == "normal" else SX(options.limit_stiffness)
    damping = s.contact_value("damping") if kind == "normal" else SX(options.limit_damping)
    depth = options.smoothing * softplus(-gap / options.smoothing)
    return stiffness * depth * ca.fmax(1 - damping * speed, 0)


def softplus(x: SX) -> SX:
    """log(1 + exp(x)), without overflow."""
    return ca.fmax(x, 0) + ca.log1p(ca.exp(-ca.fabs(x)))
