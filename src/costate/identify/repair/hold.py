"""Joints that were not logged, held still: fixed joints in their place, so that what moves with them is one body."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from costate.core.arrays import Array
from costate.core.names import unknown
from costate.model import Joint, Model, Transform


def held(model: Model, values: Mapping[str, float]) -> Model:
    """Return the model with some joints fixed at a position [rad or m], together with those that follow them."""
    if not values:
        return model
    known = {j.name: j for j in model.joints}
    for name in values:
        if name not in known or known[name].nv != 1:
            single = [j.name for j in model.joints if j.nv == 1]
            raise ValueError(f"hold: {unknown('joint', name, single)}")
    joints = tuple(_held(joint, values) for joint in model.joints)
    keep = np.concatenate([np.full(j.nq, j.name not in values) for j in model.joints])
    home = None if model.home is None else model.home[keep]
    # What else a model lists (actuators, tendons, keyframes) may name these joints, and identification needs none of it.
    return Model(model.name, model.links, joints, model.gravity, model.source, home)


def _held(joint: Joint, values: Mapping[str, float]) -> Joint:
    leader = joint.mimic.joint if joint.mimic else joint.name
    if leader not in values:
        return joint
    value = values[leader]
    if joint.mimic:
        value = joint.mimic.multiplier * value + joint.mimic.offset
    moved = _motion(joint, value)
    return Joint(joint.name, "fixed", joint.parent, joint.child, joint.origin @ moved)


def _motion(joint: Joint, value: float) -> Transform:
    if joint.kind == "prismatic":
        return Transform(translation=value * joint.axis)
    return Transform(_turn(joint.axis, value))


def _turn(axis: Array, angle: float) -> Array:
    """Return the rotation about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)


def resting_place(joint: Joint) -> float:
    """Return the position within a joint's limits that is nearest to 0 [rad or m]."""
    return float(np.clip(0.0, joint.lower[0], joint.upper[0]))


def beyond(model: Model, logged: set[str]) -> list[str] | None:
    """Return the joints that were not logged, if they all lie beyond the last logged ones; None if one lies in between."""
    moves = {j.child: j for j in model.joints}
    missing = [j.name for j in model.joints if j.nv and j.name not in logged]
    for joint in (j for j in model.joints if j.name in logged):
        link = joint.parent
        while link in moves:
            if moves[link].name in missing:
                return None
            link = moves[link].parent
    return missing
