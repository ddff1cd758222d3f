"""Poses, velocities and accelerations of links, in world axes. The world frame is the frame of the root link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.spatial import cross, zeros
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Pose, Step, Tree

Twist = tuple[SX, SX]
"""Linear and angular part of a velocity or acceleration, each (3,)."""


def link_poses(model: Model, params: Parameters, q: SX, links: Sequence[str] | None = None) -> dict[str, Pose]:
    """Return rotation (3, 3) and position [m] (3,) of links in the world; of all links if none are named."""
    tree = Tree.of(model, params)
    bodies = body_poses(tree, q)
    return {name: link_pose(tree, bodies, name) for name in _names(tree, links)}


def link_velocities(
    model: Model, params: Parameters, q: SX, v: SX, links: Sequence[str] | None = None
) -> dict[str, Twist]:
    """Return the velocity of the links' origins [m/s] and their angular velocity [rad/s], world axes."""
    tree = Tree.of(model, params)
    poses = body_poses(tree, q)
    twists = body_velocities(tree, poses, v)
    return {name: _velocity_of(tree, poses, twists, name) for name in _names(tree, links)}


def link_accelerations(
    model: Model, params: Parameters, q: SX, v: SX, a: SX, links: Sequence[str] | None = None
) -> dict[str, Twist]:
    """Return the acceleration of the links' origins and their angular acceleration [rad/s^2], world axes.

    The linear part is d^2 p/dt^2 [m/s^2]; gravity is not included.
    """
    tree = Tree.of(model, params)
    poses = body_poses(tree, q)
    twists = body_velocities(tree, poses, v)
    accelerations = _body_accelerations(tree, poses, twists, v, a)
    result = {}
    for name in _names(tree, links):
        body, (_, p) = tree.links[name]
        if body == ROOT:
            result[name] = zeros(), zeros()
            continue
        point, alpha = accelerations[body]
        arm, omega = poses[body][0] @ p, twists[body][1]
        result[name] = point + cross(alpha, arm) + cross(omega, cross(omega, arm)), alpha
    return result


def body_poses(tree: Tree, q: SX) -> list[Pose]:
    """Return the world pose of every body frame."""
    poses: list[Pose] = []
    for body, step in zip(tree.bodies, tree.steps(q), strict=True):
        if body.parent == ROOT:
            poses.append((step.rotation, step.translation))
        else:
            R, p = poses[body.parent]
            # Quarter turns only permute the columns, so this order costs one joint rotation.
            poses.append(((R @ step.constant) @ step.joint, p + R @ step.translation))
    return poses


def link_pose(tree: Tree, poses: Sequence[Pose], link: str) -> Pose:
    """Return the world pose of a link, given those of the bodies."""
    body, (R, p) = tree.links[link]
    return (R, p) if body == ROOT else (poses[body][0] @ R, poses[body][1] + poses[body][0] @ p)


def body_velocities(tree: Tree, poses: Sequence[Pose], v: SX) -> list[Twist]:
    """Return the velocity of the origin and the angular velocity of every body frame, world axes."""
    twists: list[Twist] = []
    for body, (R, p) in zip(tree.bodies, poses, strict=True):
        slide, turn = body.rates(v)
        linear, omega = R @ slide, R @ turn
        if body.parent != ROOT:
            linear_p, omega_p = twists[body.parent]
            linear = linear_p + cross(omega_p, p - poses[body.parent][1]) + linear
            omega = omega_p + omega
        twists.append((linear, omega))
    return twists


def body_twists(tree: Tree, steps: Sequence[Step], v: SX) -> list[Twist]:
    """Return the velocity of the origin and the angular velocity of every body, in the axes of its own frame."""
    twists: list[Twist] = []
    for body, step in zip(tree.bodies, steps, strict=True):
        linear_p, omega_p = (zeros(), zeros()) if body.parent == ROOT else twists[body.parent]
        slide, turn = body.rates(v)
        linear = step.down(linear_p + cross(omega_p, step.translation)) + slide
        twists.append((linear, step.down(omega_p) + turn))
    return twists


def _body_accelerations(tree: Tree, poses: Sequence[Pose], twists: Sequence[Twist], v: SX, a: SX) -> list[Twist]:
    accelerations: list[Twist] = []
    for i, (body, (R, p)) in enumerate(zip(tree.bodies, poses, strict=True)):
        slide, turn = body.rates(v)
        slide_rate, turn_rate = body.rates(a)
        slide, turn, omega = R @ slide, R @ turn, twists[i][1]
        point, alpha = R @ slide_rate + cross(omega, slide), R @ turn_rate
        if body.parent != ROOT:
            point_p, alpha_p = accelerations[body.parent]
            omega_p, arm = twists[body.parent][1], p - poses[body.parent][1]
            point += point_p + cross(alpha_p, arm) + cross(omega_p, cross(omega_p, arm)) + cross(omega_p, slide)
            alpha += alpha_p + cross(omega_p, turn)
        accelerations.append((point, alpha))
    return accelerations


def _velocity_of(tree: Tree, poses: Sequence[Pose], twists: Sequence[Twist], link: str) -> Twist:
    body, (_, p) = tree.links[link]
    if body == ROOT:
        return zeros(), zeros()
    linear, omega = twists[body]
    return linear + cross(omega, poses[body][0] @ p), omega


def wrenches_in_bodies(tree: Tree, q: SX, wrenches: Mapping[str, SX]) -> dict[int, tuple[SX, SX]]:
    """Sum wrenches on links (linear, angular; world axes, at the link's origin) in the frames of their bodies."""
    if not wrenches:
        return {}
    poses = body_poses(tree, q)
    total: dict[int, tuple[SX, SX]] = {}
    for name in _names(tree, list(wrenches)):
        body, (_, p) = tree.links[name]
        if body == ROOT:
            continue
        R = poses[body][0]
        force, torque = R.T @ wrenches[name][:3], R.T @ wrenches[name][3:]
        force_before, moment_before = total.get(body, (zeros(), zeros()))
        total[body] = force_before + force, moment_before + torque + cross(p, force)
    return total


def _names(tree: Tree, links: Sequence[str] | None) -> list[str]:
    if links is None:
        return list(tree.links)
    check_links(tree, links)
    return list(links)


def check_links(tree: Tree, links: Sequence[str]) -> None:
    """Raise a KeyError if a name is not that of a link."""
    for name in links:
        if name not in tree.links:
            raise KeyError(f"no link named {name!r}; links are {list(tree.links)}")
