"""A robot as a Pinocchio model, read by Pinocchio from a URDF or converted joint by joint: it shares no code with ours.

Several of Pinocchio's algorithms expect the joints of a subtree to follow each other, so joints are added depth first;
`Oracle` reorders what goes in and what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin  # pyright: ignore[reportMissingImports]

from costate.model.joint import JOINT_SIZES, Joint
from costate.model.model import Model


@dataclass(frozen=True)
class Oracle:
    """A Pinocchio model with a frame for every link, and the conversion of configurations and velocities."""

    source: Model
    model: pin.Model
    data: pin.Data
    joints: list[int]
    """Indices of the moving joints in our model, in Pinocchio's order."""

    @property
    def order(self) -> np.ndarray:
        """Index in our model of each of Pinocchio's velocities: v_pin = v[order], M_pin = M[order][:, order]."""
        starts, sizes = self.source.v_index, [j.nv for j in self.source.joints]
        return np.concatenate([np.arange(starts[i], starts[i] + sizes[i]) for i in self.joints]).astype(int)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Convert our q to Pinocchio's: where it has one coordinate more, the last one is an angle, given as cosine and sine."""
        parts = []
        for i, theirs in zip(self.joints, self.model.nqs[1:], strict=True):
            own = q[self.source.q_index[i] :][: self.source.joints[i].nq]
            parts.append(own if len(own) == theirs else np.array([*own[:-1], np.cos(own[-1]), np.sin(own[-1])]))
        return np.concatenate(parts)

    def back(self, x: np.ndarray) -> np.ndarray:
        """Reorder a vector, or the columns of a matrix, from Pinocchio's order of velocities to ours."""
        result = np.empty_like(x)
        result[..., self.order] = x
        return result

    def frame(self, link: str) -> int:
        """Find the index of a link's frame."""
        return self.model.getFrameId(link)


def to_pinocchio(source: Model) -> Oracle:
    """Convert a model without mimic joints. The root link's inertia is left out, as it never moves."""
    model = pin.Model()
    model.gravity.linear = source.gravity
    at: dict[str, tuple[int, pin.SE3]] = {source.links[0].name: (0, pin.SE3.Identity())}
    order, armature = [], []
    for i in _depth_first(source):
        joint, link = source.joints[i], source.links[i + 1]
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
            order.append(i)
            armature += [joint.armature] * JOINT_SIZES[joint.kind][1]
        index, pose = at[link.name]
        if index:
            inertia = pin.Inertia(link.inertia.mass, link.inertia.com, link.inertia.matrix)
            model.appendBodyToJoint(index, inertia, pose)
    for name, (index, pose) in at.items():
        model.addFrame(pin.Frame(name, index, 0, pose, pin.FrameType.OP_FRAME))
    model.armature = np.array(armature)
    return Oracle(source, model, model.createData(), order)


def read_urdf(source: Model, path: str | Path) -> Oracle:
    """Let Pinocchio read a URDF, and match joints by name. Mimic joints are free in Pinocchio's model, and must be so in source."""
    root = pin.JointModelFreeFlyer() if source.floating_base else None
    names = [j.name for j in source.joints]
    model = pin.buildModelFromUrdf(str(path)) if root is None else pin.buildModelFromUrdf(str(path), root)
    theirs = [names[0] if n == "root_joint" else n for n in list(model.names)[1:]]
    moving = [j.name for j in source.joints if j.nv]
    odd = [j.name for j in source.joints if j.kind in ("planar", "spherical")]
    if sorted(theirs) != sorted(moving) or odd:
        raise ValueError(f"Pinocchio reads other joints from {Path(path).name}: {', '.join(odd or theirs)}")
    model.gravity.linear = source.gravity
    joints = [names.index(n) for n in theirs]
    # A URDF has no place for rotor inertias that Pinocchio would read.
    model.armature = np.concatenate([np.full(source.joints[i].nv, source.joints[i].armature) for i in joints])
    return Oracle(source, model, model.createData(), joints)


def _depth_first(source: Model) -> list[int]:
    children: dict[str, list[int]] = {link.name: [] for link in source.links}
    for i, joint in enumerate(source.joints):
        children[joint.parent].append(i)

    found: list[int] = []
    waiting = children[source.links[0].name][::-1]
    while waiting:  # without recursion: a chain may have more links than Python has frames
        found.append(waiting.pop())
        waiting += children[source.joints[found[-1]].child][::-1]
    return found


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
    """Compute the in-plane axes of a planar joint as docs/conventions.md defines them, by Rodrigues' formula.

    They are the shortest rotation of z onto the axis, or of -z after a half turn about x.
    """
    if axis[2] >= 0:
        return _shortest(np.array([0.0, 0.0, 1.0]), axis)
    return _shortest(np.array([0.0, 0.0, -1.0]), axis) @ np.diag([1.0, -1.0, -1.0])


def _shortest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w = np.cross(a, b)
    K = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    return np.eye(3) + K + K @ K / (1 + a @ b)
