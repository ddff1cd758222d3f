"""Motion without contact: bias forces, and the mass matrix they act on."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.physics.algebra.ltl import Factor, factor
from costate.physics.dynamics.crba import crba
from costate.sim.forces.equality import Tied, tie
from costate.sim.forces.surroundings import drag_damping
from costate.sim.forces.tendons import resistance
from costate.sim.forces.torques import actuate, actuator_damping
from costate.sim.integrate.advance import turning
from costate.sim.integrate.bias import bias_forces
from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class Free:
    """The step as it would be without contact."""

    acceleration: SX
    """Acceleration of the velocity coordinates, (nv,)."""
    velocity: SX
    """Velocity after the step, in the axes of its start (see advance.py), (nv,)."""
    drift: SX
    """Velocity to be added to the one that positions move with, (nv,): see `travelled`."""
    torque: SX
    """Torque of the actuators, (nv,)."""
    factor: Factor | Tied
    """Factor of the mass matrix that impulses act on; motions keep to the constraints."""

    def travelled(self, s: Symbols, after: SX) -> SX:
        """Return the velocity that positions move with, (nv,). after: velocity at the end of the step, with impulses."""
        return (s.v if s.setup.method.travels_before else after) + self.drift


@dataclass(frozen=True, eq=False)
class Loads:
    """Masses and forces without contact and constraints: M (v' - v) = h force, in the axes of the start (see advance.py)."""

    M: SX
    """Mass matrix (nv, nv), with what resists velocities and positions of the end where the integrator is implicit."""
    factor: Factor
    """Its factor."""
    tied: Tied | None
    """The same with the equality constraints, if there are any."""
    bias: SX
    """Forces that oppose the actuators, (nv,)."""
    torque: SX
    """Torque of the actuators, (nv,)."""
    turning: SX
    """Acceleration of axes that turn, (nv,)."""
    drift: SX
    """Velocity to be added to the one that positions move with, (nv,)."""

    @property
    def force(self) -> SX:
        return self.torque - self.bias + self.M @ self.turning


def loads(s: Symbols, q: SX, v: SX, u: SX, extra: SX | None = None, joint_friction: bool = True) -> Loads:
    """Return masses and forces at a state. extra: further generalised forces (nv,)."""
    setup = s.setup
    model, dt = setup.scene.model, setup.h
    M = plain = crba(model, s.params, q)
    springs = SX(setup.nv, 1)
    if setup.method.implicit:  # M (v' - v) / dt = ... - D v' - K (q + dt v' - rest)
        D, K = resistance(s, q)
        D = D + actuator_damping(s, q, v, u) + drag_damping(s, q, v)
        stiffness = per_velocity(s, "stiffness")
        M = M + ca.diag(dt * per_velocity(s, "damping") + dt**2 * stiffness) + dt * D + dt**2 * K
        springs = dt * stiffness * v + dt * K @ v
    factored = factor(M)
    tied = tie(s, q, factored)
    found = bias_forces(s, q, v, plain, tied or factored, joint_friction)
    bias = (found.force if extra is None else found.force - extra) + springs
    return Loads(M, factored, tied, bias, actuate(s, q, v, u, M, bias), turning(model, v), found.drift)


def free_motion(s: Symbols, q: SX, v: SX, u: SX, extra: SX | None = None, joint_friction: bool = True) -> Free:
    """Return v + dt M^-1 (actuators + extra - bias forces). extra: further generalised forces (nv,)."""
    load = loads(s, q, v, u, extra, joint_friction)
    factored, tied = load.factor, load.tied
    acceleration = factored.solve(load.torque - load.bias)
    velocity = v + s.setup.h * (acceleration + load.turning)
    if tied is None:
        return Free(acceleration, velocity, load.drift, load.torque, factored)
    return Free(tied.acceleration(s, q, v, acceleration), tied.velocity(velocity), load.drift, load.torque, tied)


def per_velocity(s: Symbols, kind: str) -> SX:
    """Return damping or stiffness of every velocity coordinate, (nv,)."""
    model = s.setup.scene.model
    rows = SX.zeros(model.nv)
    for j, at in zip(model.joints, model.v_index, strict=True):
        scale = j.mimic.multiplier if j.mimic else 1.0
        for k in range(at, at + (1 if j.mimic else j.nv)):
            rows[k] += scale**2 * s.params[kind, j.name]
    return rows
