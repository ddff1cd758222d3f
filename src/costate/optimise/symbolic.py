"""The dynamics of a world as CasADi functions, for solvers that need expressions instead of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from casadi import SX

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Op, Program
from costate.kernel.ir.straight import Straight
from costate.kernel.ir.vector_ops import Slice
from costate.kernel.ops.scan import Scan
from costate.physics import Parameters
from costate.physics.dynamics.rnea import rnea
from costate.physics.integrate import velocity_map
from costate.sim import Torque, VelocityServo, World
from costate.sim.integrate.free import free_motion
from costate.sim.setup import Setup, Symbols
from costate.sim.step import step_program


def step_function(world: World) -> ca.Function:
    """Return the function (state (nx), control (nu)) -> state after one step (nx)."""
    return _of_state_and_control(world, "step", step_program(_smooth(world)))


def slope_function(world: World) -> ca.Function:
    """Return the function (state (nx), control (nu)) -> time derivative of the state (nx)."""
    setup = replace(_smooth(world), integrator="rk4")  # forces of an instant, not those of a step
    s = Symbols(setup)
    free = free_motion(s, s.q, s.v, s.u, setup.contact.forces(s)[0])
    slope = ca.vertcat(velocity_map(setup.scene.model, s.q) @ s.v, free.acceleration)
    b = ProgramBuilder("slope")
    args = b.inputs(*(x.numel() for x in s.inputs))
    return _of_state_and_control(world, "slope", b.program(*s.call(b, "slope", [slope], args)))


def inverse_function(world: World) -> ca.Function:
    """Return the function (state (nx), acceleration (nv)) -> controls (nu) that cause it, and their torques (nu).

    It is for worlds without contact in which every joint has one degree of freedom and a `Torque` or `VelocityServo` actuator.
    """
    setup = _smooth(world)
    if setup.contact.acts or world.nq != world.nv or len(setup.drives) != world.nv or setup.tendons:
        raise ValueError(
            "controls follow from accelerations only if the world has no contact and no tendons, and every joint has an actuator"
        )
    for d in setup.drives:
        if not isinstance(d.actuator, Torque | VelocityServo):
            raise ValueError(
                f"joint '{d.joint}' has neither Torque nor VelocityServo: no control follows from its motion"
            )
    x, a = SX.sym("x", world.nx), SX.sym("a", world.nv)
    q, v, model, still = x[: world.nq], x[world.nq :], setup.scene.model, SX(world.nv, 1)
    torque = rnea(model, Parameters.of(model), q, v, a)
    weight = rnea(model, Parameters.of(model), q, still, still, passive=None)
    controls = []
    for d in setup.drives:
        if not isinstance(d.actuator, VelocityServo):
            controls.append(torque[d.v])
        else:  # the servo's law in the limit of a time step of zero
            carried = weight[d.v] if d.actuator.gravity_compensation else 0
            controls.append(v[d.v] + (torque[d.v] - carried) / d.damping)
    found = [ca.vertcat(*controls), torque[[d.v for d in setup.drives]]]
    return ca.Function("inverse", [x, a], [ca.densify(f) for f in found])


def _smooth(world: World) -> Setup:
    setup = world.setup
    if not setup.contact.smooth:
        raise ValueError(
            f"direct optimal control needs a smooth world, but this one has {setup.contact.name} contact: build it with "
            "contact=None or contact=Compliant(), or use ilqr"
        )
    return setup


def _of_state_and_control(world: World, name: str, program: Program) -> ca.Function:
    """Write a program as a function of state and control, with parameters at their defaults."""
    x, u = SX.sym("x", world.nx), SX.sym("u", world.nu)
    given = [SX(ca.DM(np.asarray(world.setup.default(p)).ravel())) for p in world.setup.parameters]
    return ca.Function(name, [x, u], [ca.densify(expressions(program, [x, u, *given])[0])])


def expressions(program: Program, inputs: Sequence[SX]) -> list[SX]:
    """Write the outputs of a program as expressions; loops of fixed length are unrolled."""
    values = dict(zip(program.inputs, inputs, strict=True))
    for stage in program.stages:
        values.update(zip(stage.outputs, _apply(stage.op, [values[v] for v in stage.inputs]), strict=True))
    return [values[v] for v in program.outputs]


def _apply(op: Op, args: list[SX]) -> list[SX]:
    if isinstance(op, Straight):
        return op.call(args)
    if isinstance(op, Slice):
        return [args[0][op.start : op.start + op.size]]
    if isinstance(op, Scan) and not op.counted and op.until is None and not op.reverse:
        carries, sequences, shared = op.split_in(args)
        if not any(op.keep) and len(op.body.outputs) == op.n_carry:
            rows = [ca.reshape(x, x.numel() // op.steps, op.steps) for x in sequences]
            for k in range(op.steps):
                carries = expressions(op.body, [*carries, *(x[:, k] for x in rows), *shared])
            return carries
    raise ValueError(
        f"this world's step has a {type(op).__name__} stage, which cannot be written as one expression; use ilqr"
    )
