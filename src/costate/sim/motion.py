"""Motion without contact: actuators, bias forces, and the mass matrix they act on."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.physics import Parameters
from costate.physics.crba import crba
from costate.physics.ltl import Factor, factor
from costate.physics.passive import Passive
from costate.physics.rnea import rnea
from costate.sim.actuators import DCMotor, Motor, Torque
from costate.sim.advance import turning
from costate.sim.equality import Tied, tie
from costate.sim.setup import Drive, Symbols


@dataclass(frozen=True, eq=False)
class Free:
    """The step as it would be without contact."""

    acceleration: SX
    """Of the velocity coordinates, (nv,)."""
    velocity: SX
    """After the step, in the axes of its start (see advance.py), (nv,)."""
    torque: SX
    """Of the actuators, (nv,)."""
    factor: Factor | Tied
    """Of the mass matrix that impulses act on; motions keep to the constraints."""


def free_motion(s: Symbols, q: SX, v: SX, u: SX, extra: SX | None = None, joint_friction: bool = True) -> Free:
    """v + dt M^-1 (actuators + extra - bias forces). extra: further generalised forces (nv,)."""
    setup = s.setup
    model, dt = setup.scene.model, setup.dt
    M = crba(model, s.params, q)
    bias = rnea(model, s.params, q, v, SX(setup.nv, 1), s.wrenches, Passive(friction=joint_friction))
    if extra is not None:
        bias = bias - extra
    if setup.integrator == "implicit":  # M (v' - v) / dt = ... - D v' - K (q + dt v' - rest)
        stiffness = per_velocity(s, "stiffness")
        M = M + ca.diag(dt * per_velocity(s, "damping") + dt**2 * stiffness)
        bias = bias + dt * stiffness * v
    factored = factor(M)
    torque = actuate(s, q, v, u, M, bias)
    acceleration = factored.solve(torque - bias)
    velocity = v + dt * (acceleration + turning(model, v))
    tied = tie(s, q, factored)
    if tied is None:
        return Free(acceleration, velocity, torque, factored)
    return Free(tied.acceleration(s, q, v, acceleration), tied.velocity(velocity), torque, tied)


def actuate(s: Symbols, q: SX, v: SX, u: SX, M: SX, bias: SX) -> SX:
    """Torques of all actuators, (nv,).

    Servos act on the velocity they bring about: (M + dt K) v' = M v + dt (K target - bias). The torque that follows is clamped to
    the effort limit, so a servo that is not at its limit moves exactly as the implicit solution says.
    """
    setup = s.setup
    torque = SX.zeros(setup.nv)
    servos = [(k, d) for k, d in enumerate(setup.drives) if not isinstance(d.actuator, Torque | Motor)]
    for k, d in enumerate(setup.drives):
        if isinstance(d.actuator, Torque | Motor):
            gear = d.actuator.gear if isinstance(d.actuator, Motor) else 1.0
            torque[d.v] = _clamp(gear * u[k], d.limit)
    if not servos:
        return torque
    gain, pull = SX.zeros(setup.nv), SX.zeros(setup.nv)
    weight = _weights(s, q)
    for k, d in servos:
        gain[d.v] = d.damping + setup.dt * d.stiffness
        pull[d.v] = _pull(d, u[k], q) + weight[d.actuator.gravity_compensation][d.v]  # type: ignore[union-attr]
    dt = setup.dt
    heavier = factor(M + dt * ca.diag(gain))
    ahead = v + dt * heavier.solve(torque + pull - gain * v - bias)
    tied = tie(s, q, heavier)
    ahead = ahead if tied is None else tied.velocity(ahead)
    for _, d in servos:
        torque[d.v] = _clamp(pull[d.v] - gain[d.v] * ahead[d.v], d.limit)
    return torque


def _weights(s: Symbols, q: SX) -> dict[bool | str, SX]:
    """Torques that carry the weight, (nv,), by what a servo compensates for."""
    model, still = s.setup.scene.model, SX(s.setup.nv, 1)

    def weight(params: Parameters) -> SX:
        return rnea(model, params, q, still, still, passive=None)

    return {False: SX(s.setup.nv, 1), True: weight(s.params), "nominal": weight(Parameters.of(model))}


def _pull(d: Drive, target: SX, q: SX) -> SX:
    """The servo's torque at zero velocity."""
    if isinstance(d.actuator, DCMotor):
        return d.actuator.gear * d.actuator.stall_torque * _clamp(target, 1.0)
    return d.stiffness * (target - q[d.q]) if d.stiffness else d.damping * target


def _clamp(x: SX, limit: float) -> SX:
    return x if limit == float("inf") else ca.fmin(ca.fmax(x, -limit), limit)


def per_velocity(s: Symbols, kind: str) -> SX:
    """Damping or stiffness of every velocity coordinate, (nv,)."""
    model = s.setup.scene.model
    rows = SX.zeros(model.nv)
    for j, at in zip(model.joints, model.v_index, strict=True):
        scale = j.mimic.multiplier if j.mimic else 1.0
        for k in range(at, at + (1 if j.mimic else j.nv)):
            rows[k] += scale**2 * s.params[kind, j.name]
    return rows
