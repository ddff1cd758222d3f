"""Bodies that scripts look up in `_bodies`: a link's parameters as they are now, its limits, and its pose after an update."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import torch
from casadi import SX
from torch import Tensor, nn

from costate.compat.differentiable_robot_model.description import Description
from costate.compat.differentiable_robot_model.spatial_vector_algebra import (
    CoordinateTransform,
    SpatialForceVec,
    SpatialInertia,
    SpatialMotionVec,
    rotation_about,
)
from costate.core.arrays import Array
from costate.model.rotation import to_rpy
from costate.physics.params import Key
from costate.robot import Robot
from costate.robot.folding import is_foldable
from costate.robot.learnable import shape_of
from costate.robot.params import rpy_matrix, symbolic_rpy_matrix


class RotationOfAngles(nn.Module):
    """The rotation matrix of a module that gives roll, pitch and yaw."""

    def __init__(self, angles: nn.Module):
        super().__init__()
        self.angles = angles

    def forward(self) -> Tensor:
        return rpy_matrix(self.angles().reshape(3))


class FoldableRotation(RotationOfAngles):
    """The rotation matrix of a module that can be folded into kernels."""

    def raws(self) -> tuple[Tensor, ...]:
        return self.angles.raws()  # type: ignore[operator]

    def symbolic(self, *raws: SX) -> SX:
        return symbolic_rpy_matrix(ca.vec(self.angles.symbolic(*raws).T))  # type: ignore[operator]


def rotation_of(angles: nn.Module) -> nn.Module:
    """Return a module that gives the rotation matrix of roll, pitch and yaw."""
    return (FoldableRotation if is_foldable(angles) else RotationOfAngles)(angles)


class Present:
    """The values that parameters have now."""

    def __init__(self, robot: Robot, constants: Mapping[Key, Array]):
        self._learnt, self._constants = robot.learnt, constants

    def __call__(self, kind: str, owner: str) -> Tensor:
        """Return what a parameter's module gives, or the file's number as torch's default type."""
        key, learnable = (kind, owner), self._learnt.keys()
        if key in learnable:
            return self._learnt.present(key)
        return torch.tensor(self._constants[key], dtype=torch.get_default_dtype()).reshape(shape_of(kind))


class BodyInertia:
    """The mass, centre of mass and inertia of a link as they are now."""

    def __init__(self, present: Present, link: str):
        self._present, self._link = present, link

    def mass(self) -> Tensor:
        return self._present("mass", self._link)

    def com(self) -> Tensor:
        return self._present("com", self._link).reshape(1, 3)

    def inertia_mat(self) -> Tensor:
        return self._present("inertia", self._link).reshape(1, 3, 3)

    def multiply_motion_vec(self, smv: SpatialMotionVec) -> SpatialForceVec:
        return self._spatial(smv.lin.dtype).multiply_motion_vec(smv)

    def get_spatial_mat(self) -> Tensor:
        return self._spatial(torch.get_default_dtype()).get_spatial_mat()

    def _spatial(self, dtype: torch.dtype) -> SpatialInertia:
        return SpatialInertia(self.mass().to(dtype), self.com().to(dtype), self.inertia_mat().to(dtype))


class Body:
    """A link and the joint that moves it.

    It has present parameters (`trans()`, `rot_angles()`, `joint_damping()`, `inertia.mass()`, ...), and the state that
    `update_kinematic_state` and `iterative_newton_euler` leave.
    """

    pose: CoordinateTransform
    """Pose in the world."""
    vel: SpatialMotionVec
    """Velocity in its own axes, at its origin; so are `acc` and `force`."""
    acc: SpatialMotionVec
    force: SpatialForceVec
    joint_pose: CoordinateTransform
    """Pose in the parent link."""
    joint_vel: SpatialMotionVec
    joint_acc: SpatialMotionVec

    def __init__(self, robot: Robot, rows: Description, link: str, joint_id: int, joint_idx: int | None):
        self._robot, self.name, self.joint_id, self.joint_idx = robot, link, joint_id, joint_idx
        self._present, self._limits = Present(robot, rows.constants), rows.limits.get(link)
        self._joint = next((j for j in robot.model.joints if j.child == link), None)
        self.inertia = BodyInertia(self._present, link)
        self.pose, self.vel, self.acc = CoordinateTransform(), SpatialMotionVec(), SpatialMotionVec()
        self.force = SpatialForceVec()
        self.update_joint_state(torch.zeros(1, 1), torch.zeros(1, 1))
        self.update_joint_acc(torch.zeros(1, 1))

    @property
    def joint_axis(self) -> Tensor:
        """Joint axis (1, 3); zero for links that no joint moves."""
        if self._joint is None or self.joint_idx is None:
            return torch.zeros(1, 3)
        return self._present("axis", self._joint.name).reshape(1, 3)

    def trans(self) -> Tensor:
        x = torch.zeros(3) if self._joint is None else self._present("translation", self._joint.name)
        return x.reshape(1, 3)

    def rot_angles(self) -> Tensor:
        if self._joint is None:
            return torch.zeros(1, 3)
        for entry in self._robot.learnable():
            if entry.keys == (("rotation", self._joint.name),) and isinstance(entry.module, RotationOfAngles):
                return entry.module.angles().reshape(1, 3)
        angles = to_rpy(self._joint.origin.rotation)
        return torch.as_tensor(angles, dtype=torch.get_default_dtype()).reshape(1, 3)

    def joint_damping(self) -> Tensor:
        return torch.zeros(1) if self._joint is None else self._present("damping", self._joint.name)

    get_joint_damping_const = joint_damping

    def update_joint_state(self, q: Tensor, qd: Tensor) -> None:
        """Set joint_pose and joint_vel from the joint's position and velocity (batch, 1)."""
        axis = self.joint_axis.to(q.dtype)
        fixed = rpy_matrix(self.rot_angles().to(q.dtype).reshape(3)).expand(len(q), 3, 3)
        trans = self.trans().to(q.dtype).expand(len(q), 3)
        if self._slides:
            trans = trans + (fixed @ (q @ axis)[..., None])[..., 0]
        else:
            fixed = fixed @ rotation_about(q @ axis)
        self.joint_pose = CoordinateTransform(fixed, trans)
        self.joint_vel = self._along(qd)

    def update_joint_acc(self, qdd: Tensor) -> None:
        """Set joint_acc from the joint's acceleration (batch, 1)."""
        self.joint_acc = self._along(qdd)

    @property
    def _slides(self) -> bool:
        return self._joint is not None and self._joint.kind == "prismatic"

    def _along(self, rate: Tensor) -> SpatialMotionVec:
        x = rate @ self.joint_axis.to(rate.dtype)
        zero = torch.zeros_like(x)
        return SpatialMotionVec(x, zero) if self._slides else SpatialMotionVec(zero, x)

    def get_joint_limits(self) -> dict[str, float] | None:
        """Return effort, lower, upper and velocity; None for links that no joint moves."""
        return None if self._limits is None else dict(self._limits)
