"""Convert a costate model, joint by joint, into a Pinocchio model: an oracle that shares no code with ours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from costate.model.model import JOINT_SIZES, Joint, Model


@dataclass(frozen=True)
class Oracle:
    """A Pinocchio model with the frames of all links, and the conversion of configurations."""

    source: Model
    model: pin.Model

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Our q -> Pinocchio's: a planar joint has x, y, cos, sin there."""
        parts = []
        for joint, start in zip(self.source.joints, self.source.q_index, strict=True):
            own = q[start : start + joint.nq]
            parts.append([*own[:2], np.cos(own[2]), np.sin(own[2])] if joint.kind == "planar" else own)
        return np.concatenate([np.asarray(p, float) for p in parts]) if parts else np.zeros(0)

    def coordinates(self, q_pin: np.ndarray) -> np.ndarray:
        """Pinocchio's q -> ours."""
        parts, n = [], 0
        for joint in self.source.joints:
            size = 4 if joint.kind == "planar" else joint.nq
            own = q_pin[n : n + size]
            n += size
            parts.append([*own[:2], np.arctan2(own[3], own[2])] if joint.kind == "planar" else own)
        return np.concatenate([np.asarray(p, float) for p in parts])

    def frame(self, link: str) -> int:
        return self.model.getFrameId(link)


def to_pinocchio(source: Model) -> Oracle:
    """Mimic joints are not converted."""
    model = pin.Model()
    model.gravity.linear = source.gravity
    at: dict[str, tuple[int, pin.SE3]] = {source.links[0].name: (0, pin.SE3.Identity())}
    armature = []
    for joint, link in zip(source.joints, source.links[1:], strict=True):
        assert joint.mimic is None
        parent, pose = at[joint.parent]
        placement = pose * pin.SE3(joint.origin.rotation, joint.origin.translation)
        if joint.kind == "fixed":
            at[link.name] = parent, placement
        else:
            turn = plane_basis(joint.axis) if joint.kind == "planar" else np.eye(3)
            turned = pin.SE3(turn, np.zeros(3))
            index = model.addJoint(parent, _joint_model(joint), placement * turned, joint.name)
            at[link.name] = index, turned.inverse()
            armature += [joint.armature] * JOINT_SIZES[joint.kind][1]
        index, pose = at[link.name]
        inertia = pin.Inertia(link.inertia.mass, link.inertia.com, link.inertia.matrix)
        model.appendBodyToJoint(index, inertia, pose)
    for name, (index, pose) in at.items():
        model.addFrame(pin.Frame(name, index, 0, pose, pin.FrameType.OP_FRAME))
    model.armature = np.array(armature)
    return Oracle(source, model)


def _joint_model(joint: Joint) -> pin.JointModel:
    table = {
        "revolute": lambda: pin.JointModelRevoluteUnaligned(*joint.axis),
        "continuous": lambda: pin.JointModelRevoluteUnaligned(*joint.axis),
        "prismatic": lambda: pin.JointModelPrismaticUnaligned(*joint.axis),
        "planar": pin.JointModelPlanar,
        "spherical": pin.JointModelSpherical,
        "floating": pin.JointModelFreeFlyer,
    }
    return table[joint.kind]()


def plane_basis(axis: np.ndarray) -> np.ndarray:
    """The in-plane axes of a planar joint as docs/conventions.md defines them: the shortest rotation of z onto the axis,
    or of -z after a half turn about x, written with Rodrigues' formula."""
    if axis[2] >= 0:
        return _shortest(np.array([0.0, 0.0, 1.0]), axis)
    return _shortest(np.array([0.0, 0.0, -1.0]), axis) @ np.diag([1.0, -1.0, -1.0])


def _shortest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w = np.cross(a, b)
    K = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    return np.eye(3) + K + K @ K / (1 + a @ b)
