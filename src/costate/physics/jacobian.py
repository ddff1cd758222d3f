"""Geometric Jacobian of a link and its time derivative: linear rows before angular ones, world axes, at the link's origin."""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.spatial import cross, zeros
from costate.physics.kinematics import body_poses, body_velocities, check_links, link_pose
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Tree


def jacobian(model: Model, params: Parameters, q: SX, link: str, offset: SX | None = None) -> SX:
    """Return the J with (linear velocity, angular velocity) = J v of a point fixed to a link, shape (6, nv).

    offset: Point in the link frame [m], shape (3,); the link's origin by default.
    """
    tree = Tree.of(model, params)
    check_links(tree, [link])
    poses = body_poses(tree, q)
    R, p = link_pose(tree, poses, link)
    return point_jacobian(tree, poses, tree.links[link][0], p if offset is None else p + R @ offset)


def point_jacobian(tree: Tree, poses: list[tuple[SX, SX]], body: int, point: SX) -> SX:
    """Return the Jacobian of a point [m] (world axes) that moves with a tree body, shape (6, nv)."""
    columns: list[SX] = [SX(6, 1)] * tree.nv
    i = body
    while i != ROOT:
        own = tree.bodies[i]
        R, p = poses[i]
        arm = point - p
        moves = [ca.vertcat(R[:, k], zeros()) for k in own.kind.linear]
        moves += [ca.vertcat(cross(R[:, k], arm), R[:, k]) for k in own.kind.angular]
        for n, column in enumerate(moves):
            columns[own.v_start + n] = columns[own.v_start + n] + (own.scale * column if own.is_mimic else column)
        i = own.parent
    return ca.horzcat(*columns) if columns else SX(6, 0)


def jacobian_dot(model: Model, params: Parameters, q: SX, v: SX, link: str) -> SX:
    """Return dJ/dt along v, shape (6, nv): the acceleration of the link is J a + dJ/dt v."""
    tree = Tree.of(model, params)
    check_links(tree, [link])
    poses = body_poses(tree, q)
    twists = body_velocities(tree, poses, v)
    body, (_, offset) = tree.links[link]
    columns: list[SX] = [SX(6, 1)] * tree.nv
    if body != ROOT:
        reach = poses[body][0] @ offset
        point, velocity = poses[body][1] + reach, twists[body][0] + cross(twists[body][1], reach)
        _add_rates(tree, poses, twists, body, (point, velocity), columns)
    return ca.horzcat(*columns) if columns else SX(6, 0)


def _add_rates(tree: Tree, poses: list, twists: list, body: int, target: tuple[SX, SX], columns: list[SX]) -> None:
    """Add the time derivatives of the columns of `point_jacobian`, for a point with the given position and velocity."""
    i = body
    while i != ROOT:
        own = tree.bodies[i]
        (R, p), (velocity, omega) = poses[i], twists[i]
        arm, arm_rate = target[0] - p, target[1] - velocity
        rates = [ca.vertcat(cross(omega, R[:, k]), zeros()) for k in own.kind.linear]
        for k in own.kind.angular:
            turned = cross(omega, R[:, k])
            rates.append(ca.vertcat(cross(turned, arm) + cross(R[:, k], arm_rate), turned))
        for n, column in enumerate(rates):
            columns[own.v_start + n] = columns[own.v_start + n] + (own.scale * column if own.is_mimic else column)
        i = own.parent
