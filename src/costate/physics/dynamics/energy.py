"""Kinetic and potential energy."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.dynamics.momentum import center_of_mass
from costate.physics.dynamics.passive import armature, deflection
from costate.physics.dynamics.regroup import regroup
from costate.physics.joints import JOINTS
from costate.physics.kinematics import body_twists
from costate.physics.params import Parameters
from costate.physics.tree import Tree


def kinetic_energy(model: Model, params: Parameters, q: SX, v: SX) -> SX:
    """Return the kinetic energy v^T M v / 2 [J], rotors included, shape ()."""
    tree = regroup(Tree.of(model, params))
    twice = ca.dot(armature(model, params), v * v) if model.nv else SX(0)
    for body, (linear, omega) in zip(tree.bodies, body_twists(tree, tree.steps(q), v), strict=True):
        momentum, angular = body.inertia.momentum(linear, omega)
        twice += ca.dot(momentum, linear) + ca.dot(angular, omega)
    return twice / 2


def potential_energy(model: Model, params: Parameters, q: SX, springs: bool = True) -> SX:
    """Return the potential energy of gravity and of the joints' springs [J], shape ().

    That of gravity is zero if the centre of mass is at the origin.
    """
    mass, com = center_of_mass(model, params, q)
    energy = -mass * ca.dot(params["gravity", ""], com)
    return energy + spring_energy(model, params, q) if springs else energy


def spring_energy(model: Model, params: Parameters, q: SX) -> SX:
    """Return the sum of stiffness * deflection^2 / 2 over all joints [J], shape ()."""
    energy = SX(0)
    for i, joint in enumerate(model.joints):
        if joint.kind == "fixed" or params["stiffness", joint.name].nnz() == 0:
            continue
        own = q[model.q_index[i] : model.q_index[i] + JOINTS[joint.kind].nq]
        if joint.mimic:
            own = joint.mimic.multiplier * own + joint.mimic.offset
        energy += params["stiffness", joint.name] * ca.sumsqr(deflection(model, params, i, own)) / 2
    return energy
