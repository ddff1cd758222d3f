"""Soft contact: forces that are smooth functions of positions and velocities."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Program, Var
from costate.physics.integrate import integrate, velocity_map
from costate.sim.contact.options import Compliant
from costate.sim.contact.rows import constraint_rows
from costate.sim.integrate.advance import advance
from costate.sim.integrate.free import free_motion
from costate.sim.setup import Setup, Symbols


def smooth_step(setup: Setup) -> Program:
    """One substep of a world without hard contact: (x, u, parameters, wrenches) -> (x', impulses of all rows)."""
    s = Symbols(setup)
    dt, model = setup.dt, setup.scene.model
    total, forces = contact_forces(s)
    free = free_motion(s, s.q, s.v, s.u, total)
    b = ProgramBuilder("step")
    args = [b.input(f"i{k}", x.numel()) for k, x in enumerate(s.inputs)]
    if setup.integrator == "rk4":
        slope = ca.vertcat(velocity_map(model, s.q) @ s.v, free.acceleration)
        first, impulses = s.call(b, "slope", [slope, dt * forces], args)
        x = _runge_kutta(b, s, slope, args, first)
    else:
        used = s.v if setup.integrator == "explicit" else free.velocity
        x, impulses = s.call(b, "step", [advance(model, s.q, used, free.velocity, dt), dt * forces], args)
    b.output("x", x)
    b.output("impulses", impulses)
    return b.program()


def _runge_kutta(b: ProgramBuilder, s: Symbols, slope: SX, args: list[Var], first: Var) -> Var:
    """The classical method on coordinates, dq/dt = N(q) v; quaternions leave the unit sphere at the order of the method's error and
    are brought back at the end."""
    dt, model, nq = s.setup.dt, s.setup.scene.model, s.setup.nq
    symbols = [SX.sym(f"k{k}", s.setup.nx) for k in range(4)]
    slopes = [first]
    for part in (0.5, 0.5, 1.0):
        (x,) = b.call(ca.Function("ahead", [s.x, symbols[0]], [s.x + part * dt * symbols[0]]), args[0], slopes[-1])
        slopes += s.call(b, "slope", [slope], [x, *args[1:]])
    x = s.x + dt * (ca.horzcat(*symbols) @ ca.DM([1 / 6, 1 / 3, 1 / 3, 1 / 6]))
    unit = ca.vertcat(integrate(model, x[:nq], SX(s.setup.nv, 1)), x[nq:])
    return b.call(ca.Function("after", [s.x, *symbols], [unit]), args[0], *slopes)[0]


def contact_forces(s: Symbols) -> tuple[SX | None, SX]:
    """Generalised forces of contacts and joint limits (nv,), and the force [N or N m] along each row."""
    options, v = s.setup.contact, s.v
    rows = [] if options is None else constraint_rows(s, s.q, s.contacts(), s.setup.dt)
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
