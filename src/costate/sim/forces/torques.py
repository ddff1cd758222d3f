"""Torques of all drives in a substep.

Explicit actuators look at the state at the start of the step. Servos act on the velocity they bring about:

    (M + dt K) v' = M v + dt (K target - bias)

The torque that follows is clamped to the effort limit, so a servo that is not at its limit moves exactly as the implicit solution
says.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.physics import Parameters
from costate.physics.algebra.ltl import factor
from costate.physics.dynamics.rnea import rnea
from costate.sim.forces.actuators import Compensation, Explicit, Servo, clamped, is_endless
from costate.sim.forces.configuration import Configuration
from costate.sim.forces.equality import tie
from costate.sim.forces.general import General
from costate.sim.forces.lengths import Sum
from costate.sim.forces.surroundings import carried_weight
from costate.sim.setup import Drive, Share, Symbols


def actuate(s: Symbols, q: SX, v: SX, u: SX, M: SX, bias: SX) -> SX:
    """Return the generalised forces of all actuators, (nv,). M: mass matrix; bias: forces that oppose them."""
    setup, dt, c = s.setup, s.setup.h, s.at(q)
    torque = _explicit(s, c, v, u)
    learnt = s.wired.replaced("actuator_force")
    servos = [
        (k, d, d.actuator)
        for k, d in enumerate(setup.drives)
        if isinstance(d.actuator, Servo) and d.joint not in learnt
    ]
    if not servos:
        return _shared(s, c, torque)
    pull, resist, K = SX.zeros(setup.nv), SX.zeros(setup.nv), SX(setup.nv, setup.nv)
    weight = _weights(s, q)
    gains, pulls = [], []
    for k, d, servo in servos:
        carried = _along(c, d, weight[servo.gravity_compensation])
        gains.append(d.damping + dt * d.stiffness)
        pulls.append(servo.pull(u[k], d.length.of(c), d.stiffness, d.damping) + carried)
        pull = d.length.add(c, pull, pulls[-1])
        resist = d.length.add(c, resist, gains[-1] * d.length.rate(c, v))
        J = d.length.row(c)
        K = K + gains[-1] * (J.T @ J)
    heavier = factor(M + dt * K)
    ahead = v + dt * heavier.solve(torque + pull - resist - bias)
    tied = tie(s, q, heavier)
    ahead = ahead if tied is None else tied.velocity(ahead)
    for (k, d, _), gain, most in zip(servos, gains, pulls, strict=True):
        force = _limited(d, most - gain * d.length.rate(c, ahead))
        torque = d.length.add(c, torque, _learnt(s, c, v, u, k, force))
    return _shared(s, c, torque)


def actuator_damping(s: Symbols, q: SX, v: SX, u: SX) -> SX:
    """Return how much explicit actuators resist velocities where no bound holds their force, (nv, nv)."""
    total, c = SX(s.setup.nv, s.setup.nv), s.at(q)
    parts, bounds = _parts(s, c, v, u), {x.v: x for x in s.setup.shares if x.v is not None}
    torque = _explicit(s, c, v, u) if bounds else SX(0)
    joints = {j.name for j in s.setup.scene.model.joints}
    for k, d in enumerate(s.setup.drives):
        if not isinstance(d.actuator, Explicit):
            continue
        signal, x, speed = _signal(s, u, k), d.length.of(c), d.length.rate(c, v)
        more = {"part": parts[k]} if k in parts and isinstance(d.actuator, General) else {}
        damping = SX(d.actuator.resistance(signal, x, speed, **more))
        if damping.is_zero():
            continue
        if not is_endless(d.limit):
            damping = damping * (ca.fabs(_force(s, c, v, u, k, None)) < d.limit)
        if isinstance(d.length, Sum) and d.joint in joints and d.v in bounds:
            damping = damping * _is_within(s, c, bounds[d.v], torque)
        J = d.length.row(c)
        total = total + damping * (J.T @ J)
    return total


def _explicit(s: Symbols, c: Configuration, v: SX, u: SX) -> SX:
    """Return the generalised forces of all explicit actuators, before bounds on several of them, (nv,)."""
    torque, parts = SX.zeros(s.setup.nv), _parts(s, c, v, u)
    learnt = s.wired.replaced("actuator_force")
    for k, d in enumerate(s.setup.drives):
        if d.joint in learnt:
            torque = d.length.add(c, torque, _learnt(s, c, v, u, k, SX(0)))
        elif isinstance(d.actuator, Explicit):
            force = _limited(d, _force(s, c, v, u, k, parts.get(k)))
            torque = d.length.add(c, torque, _learnt(s, c, v, u, k, force))
    return torque


def _learnt(s: Symbols, c: Configuration, v: SX, u: SX, k: int, force: SX) -> SX:
    """Return the force of a drive after the networks that act on it."""
    d = s.setup.drives[k]
    if not s.wired.of("actuator_force", d.joint):
        return force
    known = {"control": u[k], "position": d.length.of(c), "speed": d.length.rate(c, v)}
    return s.wired.change("actuator_force", [d.joint], force, s.motion(c.q, v), known)


def _force(s: Symbols, c: Configuration, v: SX, u: SX, k: int, part: SX | None) -> SX:
    """Return the force of a drive along its length, before its limit. part: share that its tendon leaves it."""
    d = s.setup.drives[k]
    assert isinstance(d.actuator, Explicit)
    signal, x, speed = _signal(s, u, k), d.length.of(c), d.length.rate(c, v)
    if part is None or not isinstance(d.actuator, General):
        return d.actuator.torque(signal, x, speed)
    return clamped(part * d.actuator.unclamped(signal, x, speed), d.actuator.forces)


def _signal(s: Symbols, u: SX, k: int) -> SX:
    """Return the control of a drive, or what takes its place."""
    d = s.setup.drives[k]
    if not isinstance(d.actuator, General):
        return u[k]
    return d.actuator.signal(u[k], s.act[d.activation] if d.activation is not None else SX(0), s.setup.dt)


def _parts(s: Symbols, c: Configuration, v: SX, u: SX) -> dict[int, SX]:
    """Return the part of their forces that drives keep where those of a tendon are too large together."""
    found: dict[int, SX] = {}
    for share in s.setup.shares:
        total = SX(0)
        for k in share.drives:
            d = s.setup.drives[k]
            assert isinstance(d.actuator, General)
            x, speed = d.length.of(c), d.length.rate(c, v)
            total = total + (0 if d.actuator.is_off else d.actuator.unclamped(_signal(s, u, k), x, speed))
        beyond = ca.logic_or(total < share.low, total > share.high)
        allowed = clamped(total, (share.low, share.high))
        found |= dict.fromkeys(share.drives, ca.if_else(beyond, allowed / ca.if_else(beyond, total, 1), 1))
    return found


def _shared(s: Symbols, c: Configuration, torque: SX) -> SX:
    """Clamp the torques of joints that have a range for all their actuators together, (nv,)."""
    for share in s.setup.shares:
        if share.v is not None:
            carried = carried_weight(s, c)[share.v] if share.carries else SX(0)
            torque[share.v] = clamped(torque[share.v] + carried, (share.low, share.high)) - carried
    return torque


def _is_within(s: Symbols, c: Configuration, share: Share, torque: SX) -> SX:
    """Return whether a joint's actuators are within their range together."""
    assert share.v is not None
    total = torque[share.v] + (carried_weight(s, c)[share.v] if share.carries else 0)
    return ca.logic_and(total > share.low, total < share.high)


def _limited(d: Drive, torque: SX) -> SX:
    return clamped(torque, (-d.limit, d.limit))


def _along(c: Configuration, d: Drive, forces: SX) -> SX:
    """Return the force of an actuator that is nearest to forces on the coordinates, (nv,)."""
    if isinstance(d.length, Sum):
        if len(d.length.terms) == 1 and d.length.terms[0][2] == 1.0:
            return forces[d.v]
        return d.length.rate(c, forces) / sum(k * k for *_, k in d.length.terms)
    J = d.length.row(c)
    return J @ forces / ca.fmax(ca.dot(J, J), 1e-30)


def _weights(s: Symbols, q: SX) -> dict[Compensation, SX]:
    """Return the torques that carry the weight, (nv,), for each choice of compensation."""
    model, still = s.setup.scene.model, SX(s.setup.nv, 1)

    def weight(params: Parameters) -> SX:
        return rnea(model, params, q, still, still, passive=None)

    return {False: SX(s.setup.nv, 1), True: weight(s.params), "nominal": weight(Parameters.of(model))}
