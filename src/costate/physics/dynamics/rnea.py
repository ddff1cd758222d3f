"""Inverse dynamics: the recursive Newton-Euler algorithm (Luh, Walker & Paul, 1980), in body frames.

Accelerations are those of points (d^2 p/dt^2), not spatial ones, so that no linear velocity is needed anywhere. Gravity
is an upward acceleration of the root. U = [alpha]x + [omega]x^2 is formed once per body, for its own wrench and for the
accelerations of all its children.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.spatial import centrifugal, cross, skew, zeros
from costate.physics.dynamics.passive import ALL_PASSIVE, Passive, armature, resistance
from costate.physics.dynamics.regroup import regroup
from costate.physics.kinematics import wrenches_in_bodies
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Step, Tree

Wrenches = Mapping[str, SX]
"""Wrenches by link name: force [N] and torque [N m] in world axes, acting at the link's origin, shape (6,)."""


def rnea(
    model: Model,
    params: Parameters,
    q: SX,
    v: SX,
    a: SX,
    f_ext: Wrenches | None = None,
    passive: Passive | None = ALL_PASSIVE,
) -> SX:
    """Return joint torques M(q) a + h(q, v) + armature * a + passive forces - sum of J^T f_ext [N m or N], shape (nv,).

    q (nq,), v (nv,), a (nv,); passive: Selection of damping, friction and springs; none of them if None.
    """
    tree = Tree.of(model, params)
    external = wrenches_in_bodies(tree, q, f_ext or {})
    tau = newton_euler(regroup(tree), q, v, a, tree.gravity, external) + armature(model, params) * a
    return tau + resistance(model, params, q, v, passive)


def newton_euler(tree: Tree, q: SX, v: SX, a: SX, gravity: SX, external: Mapping[int, tuple[SX, SX]]) -> SX:
    """Return the torques of the rigid bodies alone, shape (nv,). External wrenches (force, moment) are in body frames."""
    steps = tree.steps(q)
    states = _outward(tree, steps, v, a, gravity)
    wrenches = [body.inertia.wrench(point, U) for body, (_, _, point, U) in zip(tree.bodies, states, strict=True)]
    for i, (force, moment) in external.items():
        wrenches[i] = wrenches[i][0] - force, wrenches[i][1] - moment
    return inward(tree, steps, wrenches)


def _outward(tree: Tree, steps: list[Step], v: SX, a: SX, gravity: SX) -> list[tuple[SX, SX, SX, SX]]:
    """Return omega, alpha, acceleration of the origin, and U of every body, in its own axes."""
    root = zeros(), zeros(), -gravity, SX(3, 3)
    states: list[tuple[SX, SX, SX, SX]] = []
    for body, step in zip(tree.bodies, steps, strict=True):
        omega_p, alpha_p, point_p, U_p = root if body.parent == ROOT else states[body.parent]
        omega_parent = step.down(omega_p)
        slide, turn = body.rates(v)
        slide_rate, turn_rate = body.rates(a)
        omega = omega_parent + turn
        alpha = step.down(alpha_p) + cross(omega_parent, turn) + turn_rate
        point = step.down(point_p + U_p @ step.translation) + cross(omega_parent + omega, slide) + slide_rate
        states.append((omega, alpha, point, skew(alpha) + centrifugal(omega)))
    return states


def inward(tree: Tree, steps: list[Step], wrenches: list[tuple[SX, SX]]) -> SX:
    """Return the joint torques, shape (nv,), that carry the given wrench (force, moment at the origin) of every body."""
    total = list(wrenches)
    torques: list[SX] = [SX(1, 1)] * tree.nv
    for i in reversed(range(len(tree.bodies))):
        body, step = tree.bodies[i], steps[i]
        force, moment = total[i]
        own = body.project(force, moment)
        for k in range(body.kind.nv):
            torques[body.v_start + k] = torques[body.v_start + k] + own[k]
        if body.parent != ROOT:
            up_force, up_moment = step.up(force), step.up(moment)
            parent_force, parent_moment = total[body.parent]
            total[body.parent] = (
                parent_force + up_force,
                parent_moment + up_moment + cross(step.translation, up_force),
            )
    return ca.densify(ca.vertcat(*torques)) if torques else SX(0, 1)
