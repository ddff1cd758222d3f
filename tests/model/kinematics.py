"""Slow and plain kinematics and mass properties of a model, to hold its numbers against those of other engines."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from costate.model import Inertia, Joint, Model, Transform


def motion(joint: Joint, q: np.ndarray) -> Transform:
    """Pose of the child frame in the joint frame."""
    if joint.kind in ("revolute", "continuous"):
        return Transform(Rotation.from_rotvec(q[0] * joint.axis).as_matrix())
    if joint.kind == "prismatic":
        return Transform(translation=q[0] * joint.axis)
    if joint.kind == "spherical":
        return Transform(Rotation.from_quat(q).as_matrix())
    if joint.kind == "floating":
        return Transform(Rotation.from_quat(q[3:]).as_matrix(), q[:3])
    assert joint.kind == "fixed", joint.kind
    return Transform()


def link_poses(model: Model, q: np.ndarray) -> dict[str, Transform]:
    """World pose of every link."""
    poses = {model.links[0].name: Transform()}
    for joint, start in zip(model.joints, model.q_index, strict=True):
        own = q[start : start + joint.nq]
        if joint.mimic:
            own = joint.mimic.multiplier * q[start : start + 1] + joint.mimic.offset
        poses[joint.child] = poses[joint.parent] @ joint.origin @ motion(joint, own)
    return poses


def neutral(model: Model) -> np.ndarray:
    """q = 0, with unit quaternions."""
    parts = [np.zeros(0)]
    for joint in model.joints:
        part = np.zeros(joint.nq)
        if joint.kind in ("floating", "spherical"):
            part[-1] = 1.0
        parts.append(part)
    return np.concatenate(parts)


def total_inertia(model: Model, poses: dict[str, Transform]) -> Inertia:
    """Mass, centre of mass and inertia about it of the whole robot, in world axes."""
    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for link in model.links:
        pose, inertia = poses[link.name], link.inertia
        p = pose.rotation @ inertia.com + pose.translation
        mass += inertia.mass
        first += inertia.mass * p
        second += pose.rotation @ inertia.matrix @ pose.rotation.T + inertia.mass * (p @ p * np.eye(3) - np.outer(p, p))
    com = first / mass
    return Inertia(mass, com, second - mass * (com @ com * np.eye(3) - np.outer(com, com)))
