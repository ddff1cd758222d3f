"""Rows of numbers from which every entry of the mass matrix follows by a few operations.

The composite rigid body algorithm (`crba.py`) carries the wrench of every joint through all joints towards the root. As
straight-line code that takes about 53 operations per entry: too many for hundreds of joints in a row. Here all that is
expressed in world axes once, at the origin of its own body, which takes a number of operations that is linear in the
number of joints. A row belongs to one velocity of one joint:

    the direction in which it moves its body (linear, angular), the origin p of the body, the wrench (force, moment about p)
    that accelerates the body and all that it carries by one, and the rotor inertia.

With velocity i at or above velocity j in the tree, M_ij = linear_i . force_j + angular_i . (moment_j + (p_j - p_i) x force_j).
Which is above which follows from two more numbers: in a walk over the tree from the root, parents first, the rows of all
that velocity i moves are those from `first` to before `end`.
"""

from __future__ import annotations

from itertools import accumulate

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import cross, zeros
from costate.physics.dynamics.regroup import regroup
from costate.physics.kinematics import body_poses
from costate.physics.params import Parameters
from costate.physics.tree import ROOT, Pose, Tree

_SIZES = {"linear": 3, "angular": 3, "origin": 3, "force": 3, "moment": 3, "first": 1, "end": 1, "rotor": 1}
WIDTH = sum(_SIZES.values())
"""Numbers of a row."""
_ENDS = dict(zip(_SIZES, accumulate(_SIZES.values()), strict=True))


def mass_rows(model: Model, params: Parameters, q: SX) -> tuple[SX, list[int]]:
    """Return the rows (n, WIDTH), and the index in v of the velocity of each.

    A velocity that mimic joints follow has several rows; others have one.
    """
    tree = regroup(Tree.of(model, params))
    poses = body_poses(tree, q)
    composites = _composites(tree, poses)
    spans = _spans(tree)
    rows, owners = [], []
    for i, body in enumerate(tree.bodies):
        R, p = poses[i]
        moves = [(R[:, k], zeros()) for k in body.kind.linear] + [(zeros(), R[:, k]) for k in body.kind.angular]
        rotor = body.scale**2 * params["armature", body.name]
        for k, move in enumerate(moves):
            wrench = composites[i].momentum(
                *move
            )  # accelerations from rest are to wrenches as velocities are to momenta
            motion = [body.scale * ca.vertcat(*move), p, body.scale * ca.vertcat(*wrench)]
            rows.append(ca.vertcat(*motion, spans[i][0] + k, spans[i][1], rotor).T)
            owners.append(body.v_start + k)
    return ca.densify(ca.vertcat(*rows)), owners


def mass_entry(a: SX, b: SX) -> SX:
    """Return the entry of the mass matrix that two rows of `mass_rows` make, shape (). The order of the two has no influence."""
    above = _moves(a, b)
    upper, lower = ca.if_else(above, a, b), ca.if_else(above, b, a)
    force = _part(lower, "force")
    moment = _part(lower, "moment") + cross(_part(lower, "origin") - _part(upper, "origin"), force)
    torque = ca.dot(_part(upper, "linear"), force) + ca.dot(_part(upper, "angular"), moment)
    torque += ca.if_else(_part(a, "first") == _part(b, "first"), _part(a, "rotor"), 0)
    return ca.if_else(ca.logic_or(above, _moves(b, a)), torque, 0)


def count_pairs(model: Model) -> int:
    """Return the number of entries of M on and above the diagonal that are not zero by structure."""
    above: dict[str, int] = {model.links[0].name: 0}
    total = 0
    for joint in model.joints:
        own = (
            0 if joint.kind == "fixed" else max(joint.nv, 1)
        )  # a mimic joint has a direction, but no velocity of its own
        above[joint.child] = above[joint.parent] + own
        total += own * above[joint.child]
    return total


def _part(row: SX, name: str) -> SX:
    return row[_ENDS[name] - _SIZES[name] : _ENDS[name]]


def _moves(a: SX, b: SX) -> SX:
    """Return 1 if the velocity of row a moves that of row b, or is the same, else 0."""
    return ca.logic_and(_part(a, "first") <= _part(b, "first"), _part(b, "first") < _part(a, "end"))


def _composites(tree: Tree, poses: list[Pose]) -> list[Inertia]:
    """Return the inertia of every body together with all bodies it carries, about its own origin, in world axes."""
    composites = [body.inertia.rotated(R) for body, (R, _) in zip(tree.bodies, poses, strict=True)]
    for i in reversed(range(len(composites))):
        parent = tree.bodies[i].parent
        if parent != ROOT:
            composites[parent] += composites[i].shifted(poses[i][1] - poses[parent][1])
    return composites


def _spans(tree: Tree) -> list[tuple[int, int]]:
    """Return (first, end) of the rows that belong to each body and to all bodies it carries."""
    sizes = [body.kind.nv for body in tree.bodies]
    for i in reversed(range(len(sizes))):
        if tree.bodies[i].parent != ROOT:
            sizes[tree.bodies[i].parent] += sizes[i]
    free = {ROOT: 0}
    spans = []
    for i, body in enumerate(tree.bodies):
        first = free[body.parent]
        free[body.parent] += sizes[i]
        free[i] = first + body.kind.nv
        spans.append((first, first + sizes[i]))
    return spans
