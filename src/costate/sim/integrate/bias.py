"""Bias forces of a substep: what actuators and contact act against. Every contact model takes them from here.

Weight, wrenches, and passive and learnt forces are those of the start. Forces of inertia, which are quadratic in the velocity,
would gain energy in every step if they were, too. They are those of the middle of the substep:

    single bodies    coast through it by themselves, exactly (coast.py), and positions move with their mean velocity
    robots           c(q, v - h/2 M^-1 c(q, v)): with the velocity half a step ahead, as far as inertia alone changes it.
                     Positions move with the velocity of the end: a leapfrog method, but for other forces

Weight, contact and actuators take no part in the middle: what is held at rest has the forces of rest. Euler's method of MuJoCo
takes the start in all of this, and the stages of rk4 need the forces of an instant: `Setup.coasts` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.physics.algebra.ltl import Factor
from costate.physics.dynamics.passive import Passive, armature, resistance
from costate.physics.dynamics.rnea import rnea
from costate.sim.contact.learnt import learnt_forces
from costate.sim.forces.equality import Tied
from costate.sim.forces.surroundings import wrenches
from costate.sim.forces.tendons import tendon_forces
from costate.sim.integrate.advance import single_bodies, turning
from costate.sim.integrate.coast import about_pivot, coast
from costate.sim.setup import Symbols


@dataclass(frozen=True, eq=False)
class Bias:
    """Forces that oppose actuators, and the drift of positions."""

    force: SX
    """Mean generalised forces of the substep, (nv,)."""
    drift: SX
    """Velocity, in the axes of the substep's start, that is added to the one positions move with, (nv,)."""


def bias_forces(s: Symbols, q: SX, v: SX, M: SX, factored: Factor | Tied, joint_friction: bool = True) -> Bias:
    """Return the bias forces at a state. M: mass matrix (nv, nv); factored: factors of it, or of one with more on it."""
    setup, model = s.setup, s.setup.scene.model
    pushes, passive = wrenches(s, q, v), Passive(friction=joint_friction)
    still, drift = SX(setup.nv, 1), SX(setup.nv, 1)
    if setup.coasts:
        # In the axes of the bodies, which turn: what `turning` adds to accelerations is part of the forces.
        loss, drift = _coasting(s, v)
        middle = _middle(s, q, v, factored)
        rate = loss + turning(model, v) - turning(model, middle)
        force = rnea(model, s.params, q, middle, still, pushes, None)
        force = force + M @ rate - armature(model, s.params) * rate + resistance(model, s.params, q, v, passive)
    else:
        force = rnea(model, s.params, q, v, still, pushes, passive)
    if setup.tendons:
        force = force - tendon_forces(s, q, v, joint_friction)
    learnt = learnt_forces(s, q, v)
    return Bias(force if learnt is None else force - learnt, drift)


def drift(s: Symbols) -> SX:
    """Return the drift of positions alone, (nv,)."""
    return _coasting(s, s.v)[1] if s.setup.coasts else SX(s.setup.nv, 1)


def _coasting(s: Symbols, v: SX) -> tuple[SX, SX]:
    """Return how fast single bodies lose velocity by inertia, in axes that stand still, and their drift, (nv,) each."""
    setup = s.setup
    loss, drift = SX(setup.nv, 1), SX(setup.nv, 1)
    bodies = {body.v_start: body for body in s.tree.bodies}
    for i, n in single_bodies(setup.scene.model):
        own, inertia = slice(i, i + n + 3), bodies[i].inertia
        after, travelled = coast(inertia, v[own], setup.h) if n else about_pivot(inertia, v[own], setup.h)
        loss[own] = (v[own] - after) / setup.h
        drift[own] = travelled - (v[own] if setup.method.travels_before else after)
    return ca.sparsify(loss), ca.sparsify(drift)


def _middle(s: Symbols, q: SX, v: SX, factored: Factor | Tied) -> SX:
    """Return the velocities of robots in the middle of the substep, and zeros for single bodies, (nv,)."""
    model, h = s.setup.scene.model, s.setup.h
    robots = _of_robots(s, v)
    if not robots.nnz():
        return robots
    weightless = s.params.replace({("gravity", ""): SX(3, 1)})
    force = rnea(model, weightless, q, robots, SX(s.setup.nv, 1), passive=None)
    return _of_robots(s, robots - h / 2 * (factored.solve(force) - turning(model, robots)))


def _of_robots(s: Symbols, x: SX) -> SX:
    """Return x (nv,) with structural zeros in the rows of single bodies."""
    rows = SX(x)
    for i, n in single_bodies(s.setup.scene.model):
        rows[i : i + n + 3] = 0
    return ca.sparsify(rows)
