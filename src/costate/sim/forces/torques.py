"""Torques of all drives in a substep.

Explicit actuators look at the state at the start of the step. Servos act on the velocity they bring about:

    (M + dt K) v' = M v + dt (K target - bias)

The torque that follows is clamped to the effort limit, so a servo that is not at its limit moves exactly as the implicit solution
says.
"""

from __future__ import annotations

from casadi import SX

from costate.physics import Parameters
from costate.physics.algebra.ltl import factor
from costate.physics.dynamics.rnea import rnea
from costate.sim.forces.actuators import Compensation, Explicit, Servo, clamped
from costate.sim.forces.equality import tie
from costate.sim.setup import Drive, Symbols


def actuate(s: Symbols, q: SX, v: SX, u: SX, M: SX, bias: SX) -> SX:
    """Return the generalised forces of all actuators, (nv,). M: mass matrix; bias: forces that oppose them."""
    setup, dt = s.setup, s.setup.h
    torque = SX.zeros(setup.nv)
    servos: list[tuple[Drive, Servo, SX]] = []
    for k, d in enumerate(setup.drives):
        if isinstance(d.actuator, Explicit):
            _add(torque, d, _limited(d, d.actuator.torque(u[k], d.length.of(q), d.length.rate(v))))
        elif isinstance(d.actuator, Servo):
            servos.append((d, d.actuator, u[k]))
    if not servos:
        return torque
    pull, resist, K = SX.zeros(setup.nv), SX.zeros(setup.nv), SX(setup.nv, setup.nv)
    weight = _weights(s, q)
    gains, pulls = [], []
    for d, servo, control in servos:
        carried = _along(d, weight[servo.gravity_compensation])
        gains.append(d.damping + dt * d.stiffness)
        pulls.append(servo.pull(control, d.length.of(q), d.stiffness, d.damping) + carried)
        _add(pull, d, pulls[-1])
        _add(resist, d, gains[-1] * d.length.rate(v))
        J = d.length.row(setup.nv)
        K = K + gains[-1] * (J.T @ J)
    heavier = factor(M + dt * K)
    ahead = v + dt * heavier.solve(torque + pull - resist - bias)
    tied = tie(s, q, heavier)
    ahead = ahead if tied is None else tied.velocity(ahead)
    for (d, *_), gain, most in zip(servos, gains, pulls, strict=True):
        _add(torque, d, _limited(d, most - gain * d.length.rate(ahead)))
    return torque


def actuator_damping(s: Symbols, q: SX, v: SX, u: SX) -> SX:
    """Return how much explicit actuators resist velocities, (nv, nv)."""
    total = SX(s.setup.nv, s.setup.nv)
    for k, d in enumerate(s.setup.drives):
        if not isinstance(d.actuator, Explicit):
            continue
        damping = SX(d.actuator.resistance(u[k], d.length.of(q), d.length.rate(v)))
        if not damping.is_zero():
            J = d.length.row(s.setup.nv)
            total = total + damping * (J.T @ J)
    return total


def _limited(d: Drive, torque: SX) -> SX:
    return clamped(torque, (-d.limit, d.limit))


def _add(forces: SX, d: Drive, force: SX) -> None:
    """Add the force of an actuator to those on the coordinates, (nv,)."""
    for _, iv, c in d.length.terms:
        forces[iv] += force if c == 1.0 else c * force


def _along(d: Drive, forces: SX) -> SX:
    """Return the force of an actuator that is nearest to forces on the coordinates, (nv,)."""
    if len(d.length.terms) == 1 and d.length.terms[0][2] == 1.0:
        return forces[d.v]
    return d.length.rate(forces) / sum(c * c for *_, c in d.length.terms)


def _weights(s: Symbols, q: SX) -> dict[Compensation, SX]:
    """Return the torques that carry the weight, (nv,), for each choice of compensation."""
    model, still = s.setup.scene.model, SX(s.setup.nv, 1)

    def weight(params: Parameters) -> SX:
        return rnea(model, params, q, still, still, passive=None)

    return {False: SX(s.setup.nv, 1), True: weight(s.params), "nominal": weight(Parameters.of(model))}
