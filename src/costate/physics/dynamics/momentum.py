"""Centre of mass, momentum about it, and the matrices that map v to them, in world axes.

Links fixed to the root do not count: they belong to the world.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.spatial import cross, zeros
from costate.physics.kinematics import body_poses, body_twists
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Tree


def center_of_mass(model: Model, params: Parameters, q: SX) -> tuple[SX, SX]:
    """Return mass [kg] and centre of mass [m], shape (3,), of the links that can move."""
    tree = Tree.of(model, params)
    mass, first = SX(1, 1), zeros()
    for body, (R, p) in zip(tree.bodies, body_poses(tree, q), strict=True):
        mass += body.inertia.mass
        first += R @ body.inertia.first + body.inertia.mass * p
    return mass, first / mass


def com_jacobian(model: Model, params: Parameters, q: SX) -> SX:
    """Return the J with d(centre of mass)/dt = J v, shape (3, nv)."""
    mass, _ = center_of_mass(model, params, q)
    return _momenta(model, params, q)[:3, :] / mass


def momentum_matrix(model: Model, params: Parameters, q: SX) -> SX:
    """Return the A with A v = (linear momentum [kg m/s], angular momentum about the centre of mass [kg m^2/s]).

    Its shape is (6, nv).
    """
    _, com = center_of_mass(model, params, q)
    about_origin = _momenta(model, params, q)
    linear = about_origin[:3, :]
    columns = [about_origin[3:, k] - cross(com, linear[:, k]) for k in range(model.nv)]
    return ca.vertcat(linear, ca.horzcat(*columns)) if columns else SX(6, 0)


def momentum(model: Model, params: Parameters, q: SX, v: SX) -> SX:
    """Return the linear momentum [kg m/s] and the angular one about the centre of mass [kg m^2/s], shape (6,)."""
    tree = Tree.of(model, params)
    steps = tree.steps(q)
    twists = body_twists(tree, steps, v)
    totals = [b.inertia.momentum(*twist) for b, twist in zip(tree.bodies, twists, strict=True)]
    linear, angular = zeros(), zeros()
    for i in reversed(range(len(totals))):
        up = steps[i].up(totals[i][0])
        about_parent = up, steps[i].up(totals[i][1]) + cross(steps[i].translation, up)
        parent = tree.bodies[i].parent
        if parent == ROOT:
            linear, angular = linear + about_parent[0], angular + about_parent[1]
        else:
            totals[parent] = totals[parent][0] + about_parent[0], totals[parent][1] + about_parent[1]
    return ca.vertcat(linear, angular - cross(center_of_mass(model, params, q)[1], linear))


def _momenta(model: Model, params: Parameters, q: SX) -> SX:
    """Return linear and angular momentum about the world's origin per unit of each velocity, shape (6, nv)."""
    tree = Tree.of(model, params)
    poses = body_poses(tree, q)
    composites = [b.inertia.rotated(R).shifted(p) for b, (R, p) in zip(tree.bodies, poses, strict=True)]
    columns: list[SX] = [SX(6, 1)] * tree.nv
    for i in reversed(range(len(composites))):
        body, (R, p) = tree.bodies[i], poses[i]
        # The velocity of the body's point at the world's origin, for a unit of each joint velocity.
        twists = [(R[:, k], SX(3, 1)) for k in body.kind.linear]
        twists += [(cross(p, R[:, k]), R[:, k]) for k in body.kind.angular]
        for n, (linear, omega) in enumerate(twists):
            column = ca.vertcat(*composites[i].momentum(linear, omega))
            columns[body.v_start + n] = columns[body.v_start + n] + (body.scale * column if body.is_mimic else column)
        if body.parent != ROOT:
            composites[body.parent] += composites[i]
    return ca.horzcat(*columns) if columns else SX(6, 0)
