"""Motion without contact: actuators, bias forces, and the mass matrix they act on."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import casadi as ca
import numpy as np
from casadi import SX

from costate.physics import Parameters
from costate.physics.algebra.ltl import Factor, factor
from costate.physics.dynamics.crba import crba
from costate.physics.dynamics.passive import Passive
from costate.physics.dynamics.rnea import rnea
from costate.sim.forces.actuators import Affine, DCMotor, Explicit, Motor, Torque
from costate.sim.forces.equality import Tied, tie
from costate.sim.forces.tendons import resistance, tendon_forces
from costate.sim.integrate.advance import turning
from costate.sim.setup import Drive, Symbols


@dataclass(frozen=True, eq=False)
class Free:
    """The step as it would be without contact."""

    acceleration: SX
    """Acceleration of the velocity coordinates, (nv,)."""
    velocity: SX
    """Velocity after the step, in the axes of its start (see advance.py), (nv,)."""
    torque: SX
    """Torque of the actuators, (nv,)."""
    factor: Factor | Tied
    """Factor of the mass matrix that impulses act on; motions keep to the constraints."""


def free_motion(s: Symbols, q: SX, v: SX, u: SX, extra: SX | None = None, joint_friction: bool = True) -> Free:
    """Return v + dt M^-1 (actuators + extra - bias forces). extra: further generalised forces (nv,)."""
    setup = s.setup
    model, dt = setup.scene.model, setup.dt
    M = crba(model, s.params, q)
    bias = rnea(model, s.params, q, v, SX(setup.nv, 1), s.wrenches, Passive(friction=joint_friction))
    if setup.tendons:
        bias = bias - tendon_forces(s, q, v, joint_friction)
    if extra is not None:
        bias = bias - extra
    if setup.method.implicit:  # M (v' - v) / dt = ... - D v' - K (q + dt v' - rest)
        D, K = resistance(s, q)
        stiffness = per_velocity(s, "stiffness")
        M = M + ca.diag(dt * per_velocity(s, "damping") + dt**2 * stiffness) + dt * D + dt**2 * K
        bias = bias + dt * stiffness * v + dt * K @ v
    factored = factor(M)
    torque = actuate(s, q, v, u, M, bias)
    acceleration = factored.solve(torque - bias)
    velocity = v + dt * (acceleration + turning(model, v))
    tied = tie(s, q, factored)
    if tied is None:
        return Free(acceleration, velocity, torque, factored)
    return Free(tied.acceleration(s, q, v, acceleration), tied.velocity(velocity), torque, tied)


def actuate(s: Symbols, q: SX, v: SX, u: SX, M: SX, bias: SX) -> SX:
    """Return the torques of all actuators, (nv,).

    Servos act on the velocity they bring about: (M + dt K) v' = M v + dt (K target - bias). The torque that follows is clamped to
    the effort limit, so a servo that is not at its limit moves exactly as the implicit solution says.
    """
    setup = s.setup
    torque = SX.zeros(setup.nv)
    servos = [(k, d) for k, d in enumerate(setup.drives) if not isinstance(d.actuator, Explicit)]
    for k, d in enumerate(setup.drives):
        if isinstance(d.actuator, Explicit):
            _add(torque, d, _clamp(_push(d.actuator, u[k], d.length.of(q), d.length.rate(v)), d.limit))
    if not servos:
        return torque
    pull, resist, K = SX.zeros(setup.nv), SX.zeros(setup.nv), SX(setup.nv, setup.nv)
    weight = _weights(s, q)
    gains, pulls = [], []
    for k, d in servos:
        carried = _along(d, weight[d.actuator.gravity_compensation])  # type: ignore[union-attr]
        gains.append(d.damping + setup.dt * d.stiffness)
        pulls.append(_pull(d, u[k], d.length.of(q)) + carried)
        _add(pull, d, pulls[-1])
        _add(resist, d, gains[-1] * d.length.rate(v))
        J = d.length.row(setup.nv)
        K = K + gains[-1] * (J.T @ J)
    dt = setup.dt
    heavier = factor(M + dt * K)
    ahead = v + dt * heavier.solve(torque + pull - resist - bias)
    tied = tie(s, q, heavier)
    ahead = ahead if tied is None else tied.velocity(ahead)
    for (_, d), gain, most in zip(servos, gains, pulls, strict=True):
        _add(torque, d, _clamp(most - gain * d.length.rate(ahead), d.limit))
    return torque


def _add(forces: SX, d: Drive, force: SX) -> None:
    """Add the force of an actuator to those on the coordinates, (nv,)."""
    for _, iv, c in d.length.terms:
        forces[iv] += force if c == 1.0 else c * force


def _along(d: Drive, forces: SX) -> SX:
    """Return the force of an actuator that is nearest to forces on the coordinates, (nv,)."""
    if len(d.length.terms) == 1 and d.length.terms[0][2] == 1.0:
        return forces[d.v]
    return d.length.rate(forces) / sum(c * c for *_, c in d.length.terms)


def _push(a: Torque | Motor | Affine, u: SX, x: SX, speed: SX) -> SX:
    """Return the torque of an actuator that looks at the start of the step. x, speed: position and velocity of what it acts on."""
    if isinstance(a, Torque):
        return u
    if isinstance(a, Motor):
        return a.gear * u
    return _within(_affine(a, u, x, speed), a.torques)


def _affine(a: Affine, u: SX, x: SX, speed: SX) -> SX:
    return a.gain * _within(u, a.controls) + a.offset - a.stiffness * x - a.damping * speed


def actuator_damping(s: Symbols, q: SX, v: SX, u: SX) -> SX:
    """Return the damping of affine actuators that are not at the end of their range, (nv, nv)."""
    total = SX(s.setup.nv, s.setup.nv)
    for k, d in enumerate(s.setup.drives):
        a = d.actuator
        if not isinstance(a, Affine) or not a.damping:
            continue
        force = _affine(a, u[k], d.length.of(q), d.length.rate(v))
        free = ca.logic_and(force > a.torques[0], force < a.torques[1])
        J = d.length.row(s.setup.nv)
        total = total + (a.damping * free if np.isfinite(a.torques).any() else a.damping) * (J.T @ J)
    return total


def _weights(s: Symbols, q: SX) -> dict[bool | str, SX]:
    """Return the torques that carry the weight, (nv,), by what a servo compensates for."""
    model, still = s.setup.scene.model, SX(s.setup.nv, 1)

    def weight(params: Parameters) -> SX:
        return rnea(model, params, q, still, still, passive=None)

    return {False: SX(s.setup.nv, 1), True: weight(s.params), "nominal": weight(Parameters.of(model))}


def _pull(d: Drive, target: SX, x: SX) -> SX:
    """Return the servo's torque at position x and zero velocity."""
    if isinstance(d.actuator, DCMotor):
        return d.actuator.gear * d.actuator.stall_torque * _clamp(target, 1.0)
    return d.stiffness * (target - x) if d.stiffness else d.damping * target


def _clamp(x: SX, limit: float) -> SX:
    return _within(x, (-limit, limit))


def _within(x: SX, span: tuple[float, float]) -> SX:
    low, high = span
    x = x if low == -inf else ca.fmax(x, low)
    return x if high == inf else ca.fmin(x, high)


def per_velocity(s: Symbols, kind: str) -> SX:
    """Return damping or stiffness of every velocity coordinate, (nv,)."""
    model = s.setup.scene.model
    rows = SX.zeros(model.nv)
    for j, at in zip(model.joints, model.v_index, strict=True):
        scale = j.mimic.multiplier if j.mimic else 1.0
        for k in range(at, at + (1 if j.mimic else j.nv)):
            rows[k] += scale**2 * s.params[kind, j.name]
    return rows
