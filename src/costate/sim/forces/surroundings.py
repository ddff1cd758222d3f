"""Forces of the surroundings on links: fluids that they move through, and weights that are carried.

With the velocity (v, w) of a link in the axes of its box, relative to the fluid, and edge lengths b (MuJoCo's model of a box):

    force_i  = -3 pi d viscosity v_i  - density / 2 b_j b_k |v_i| v_i,   d the mean of the edge lengths
    torque_i = -pi d^3 viscosity w_i - density / 64 b_i (b_j^4 + b_k^4) |w_i| w_i
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX

from costate.model.drag import Drag
from costate.physics.algebra.spatial import cross
from costate.physics.jacobian import point_jacobian
from costate.physics.kinematics import body_poses, link_pose
from costate.physics.tree import ROOT
from costate.sim.forces.configuration import Configuration
from costate.sim.setup import Symbols


def wrenches(s: Symbols, q: SX, v: SX) -> dict[str, SX]:
    """Return the wrenches on links, world axes at the link's origin: those given, and those of the surroundings."""
    model, total = s.setup.scene.model, dict(s.wrenches)
    bodies, learnt = body_poses(s.tree, q), s.wired.replaced("drag")
    for link in model.links[1:]:
        drags = link.drag is not None and link.name not in learnt
        if s.tree.links[link.name][0] == ROOT or not (drags or link.carried):
            continue
        R, _ = link_pose(s.tree, bodies, link.name)
        force, torque = SX.zeros(3), SX.zeros(3)
        if link.carried:
            force = -link.carried * s.params["mass", link.name] * s.params["gravity", ""]
            torque = cross(R @ s.params["com", link.name], force)
        if drags:
            assert link.drag is not None
            push, twist = _drag(s, bodies, link.name, link.drag, v)
            force, torque = force + push, torque + twist + cross(R @ SX(link.drag.pose.translation), push)
        total[link.name] = total.get(link.name, SX.zeros(6)) + ca.vertcat(force, torque)
    return total


def carried_weight(s: Symbols, c: Configuration) -> SX:
    """Return the torques of the weight that is carried, (nv,)."""
    total = SX(s.setup.nv, 1)
    for link in s.setup.scene.model.links[1:]:
        if link.carried:
            R, p = link_pose(s.tree, c.bodies, link.name)
            force = -link.carried * s.params["mass", link.name] * s.params["gravity", ""]
            total = total + c.jacobian(link.name, p + R @ s.params["com", link.name])[:3, :].T @ force
    return total


def drag_damping(s: Symbols, q: SX, v: SX) -> SX:
    """Return how much fluids resist velocities, (nv, nv)."""
    total = SX(s.setup.nv, s.setup.nv)
    bodies, learnt = body_poses(s.tree, q), s.wired.replaced("drag")
    for link in s.setup.scene.model.links[1:]:
        if link.drag and link.name not in learnt and s.tree.links[link.name][0] != ROOT:
            J, still = _box_motion(s, bodies, link.name, link.drag)
            linear, square = _coefficients(link.drag)
            total = total + J.T @ ca.diag(linear + 2 * square * ca.fabs(J @ v - still)) @ J
    return total


def _drag(s: Symbols, bodies: list, link: str, drag: Drag, v: SX) -> tuple[SX, SX]:
    """Return force and torque of a fluid at the centre of a box, world axes."""
    J, still = _box_motion(s, bodies, link, drag)
    relative = J @ v - still
    linear, square = _coefficients(drag)
    wrench = -(linear + square * ca.fabs(relative)) * relative
    R = link_pose(s.tree, bodies, link)[0] @ SX(drag.pose.rotation)
    return R @ wrench[:3], R @ wrench[3:]


def _box_motion(s: Symbols, bodies: list, link: str, drag: Drag) -> tuple[SX, SX]:
    """Return the Jacobian (6, nv) of a box's velocity in its own axes, and the velocity (6,) at which the fluid is at rest around
    it."""
    R, p = link_pose(s.tree, bodies, link)
    J = point_jacobian(s.tree, bodies, s.tree.links[link][0], p + R @ SX(drag.pose.translation))
    axes = (R @ SX(drag.pose.rotation)).T
    return ca.vertcat(axes @ J[:3, :], axes @ J[3:, :]), ca.vertcat(axes @ SX(drag.wind), SX.zeros(3))


def _coefficients(drag: Drag) -> tuple[SX, SX]:
    """Return the resistance to each velocity of a box, and that to its square, (6,) each."""
    b, mean = drag.sides, float(np.mean(drag.sides))
    linear = drag.viscosity * np.pi * np.repeat([3 * mean, mean**3], 3)
    areas = [b[1] * b[2], b[0] * b[2], b[0] * b[1]]
    fins = [b[i] * (b[j] ** 4 + b[k] ** 4) for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1))]
    return SX(linear), SX(drag.density * np.array([*(x / 2 for x in areas), *(x / 64 for x in fins)]))
