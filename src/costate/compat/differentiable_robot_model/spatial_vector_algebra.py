"""Spatial vectors with the interface of `differentiable_robot_model.spatial_vector_algebra`.

They are batches (batch, 3) of linear and angular parts; with them come rigid transforms between frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from costate.compat.differentiable_robot_model.pose import quaternion_kernel
from costate.compat.differentiable_robot_model.utils import (
    cross_product,
    vector3_to_skew_symm_matrix,
)


def x_rot(angle: Tensor) -> Tensor:
    """Return rotations about x of angles [rad] (), (batch,) or (batch, 1); shape (batch, 3, 3)."""
    return _turn(angle, 0)


def y_rot(angle: Tensor) -> Tensor:
    """Return rotations about y, likewise."""
    return _turn(angle, 1)


def z_rot(angle: Tensor) -> Tensor:
    """Return rotations about z, likewise."""
    return _turn(angle, 2)


def _turn(angle: Tensor, axis: int) -> Tensor:
    w = angle.reshape(-1, 1) * torch.eye(3, dtype=angle.dtype)[axis]
    return rotation_about(w)


def rotation_about(w: Tensor) -> Tensor:
    """Return the rotations of rotation vectors (batch, 3) [rad]."""
    return torch.linalg.matrix_exp(vector3_to_skew_symm_matrix(w))


class CoordinateTransform:
    """A map x -> rot x + trans, with rot (batch, 3, 3) and trans (batch, 3)."""

    def __init__(self, rot: Tensor | None = None, trans: Tensor | None = None, device: Any = "cpu"):
        self.set_rotation(torch.eye(3) if rot is None else rot)
        self.set_translation(torch.zeros(3) if trans is None else trans)

    def set_translation(self, t: Tensor) -> None:
        self._trans = t[None] if t.dim() == 1 else t

    def set_rotation(self, rot: Tensor) -> None:
        self._rot = rot[None] if rot.dim() == 2 else rot

    def rotation(self) -> Tensor:
        return self._rot

    def translation(self) -> Tensor:
        return self._trans

    def inverse(self) -> CoordinateTransform:
        return CoordinateTransform(self._rot.mT, -_apply(self._rot.mT, self._trans))

    def multiply_transform(self, coordinate_transform: CoordinateTransform) -> CoordinateTransform:
        """Return the transform that applies the other one first, then this."""
        other = coordinate_transform
        return CoordinateTransform(self._rot @ other._rot, _apply(self._rot, other._trans) + self._trans)

    def trans_cross_rot(self) -> Tensor:
        return vector3_to_skew_symm_matrix(self._trans) @ self._rot

    def get_quaternion(self) -> Tensor:
        """Return the quaternion xyzw, (batch, 4), with the sign of `pose.signed`."""
        return quaternion_kernel().apply([self._rot])[0]

    def to_matrix(self) -> Tensor:
        """Return the spatial transform (batch, 6, 6) of motions (angular, linear) from outside into this frame."""
        E = self._rot.mT
        return _blocks(E, -E @ vector3_to_skew_symm_matrix(self._trans))

    def to_matrix_transpose(self) -> Tensor:
        E = self._rot.mT
        return _blocks(E, -(self._rot @ vector3_to_skew_symm_matrix(self._trans)).mT)


class _SpatialVec:
    """A spatial vector: a linear and an angular part, (batch, 3) each."""

    lin: Tensor
    ang: Tensor

    def get_vector(self) -> Tensor:
        """Return the angular, then the linear part, (batch, 6)."""
        return torch.cat([self.ang, self.lin], dim=1)

    def multiply(self, v: Tensor) -> SpatialForceVec:
        """Return every row times a number."""
        return SpatialForceVec(self.lin * v.reshape(-1, 1), self.ang * v.reshape(-1, 1))

    def dot(self, smv: _SpatialVec) -> Tensor:
        return (self.ang * smv.ang).sum(-1) + (self.lin * smv.lin).sum(-1)


class SpatialMotionVec(_SpatialVec):
    """A velocity or acceleration of a frame, in its axes."""

    def __init__(self, lin_motion: Tensor | None = None, ang_motion: Tensor | None = None, device: Any = None):
        self.lin = torch.zeros(1, 3) if lin_motion is None else lin_motion
        self.ang = torch.zeros(1, 3) if ang_motion is None else ang_motion

    def add_motion_vec(self, smv: SpatialMotionVec) -> SpatialMotionVec:
        return SpatialMotionVec(self.lin + smv.lin, self.ang + smv.ang)

    def cross_motion_vec(self, smv: SpatialMotionVec) -> SpatialMotionVec:
        lin = cross_product(self.ang, smv.lin) + cross_product(self.lin, smv.ang)
        return SpatialMotionVec(lin, cross_product(self.ang, smv.ang))

    def cross_force_vec(self, sfv: SpatialForceVec) -> SpatialForceVec:
        ang = cross_product(self.ang, sfv.ang) + cross_product(self.lin, sfv.lin)
        return SpatialForceVec(cross_product(self.ang, sfv.lin), ang)

    def transform(self, transform: CoordinateTransform) -> SpatialMotionVec:
        R = transform.rotation()
        lin = _apply(R, self.lin) + _apply(transform.trans_cross_rot(), self.ang)
        return SpatialMotionVec(lin, _apply(R, self.ang))


class SpatialForceVec(_SpatialVec):
    """A force on a frame, in its axes."""

    def __init__(self, lin_force: Tensor | None = None, ang_force: Tensor | None = None, device: Any = None):
        self.lin = torch.zeros(1, 3) if lin_force is None else lin_force
        self.ang = torch.zeros(1, 3) if ang_force is None else ang_force

    def add_force_vec(self, sfv: SpatialForceVec) -> SpatialForceVec:
        return SpatialForceVec(self.lin + sfv.lin, self.ang + sfv.ang)

    def transform(self, transform: CoordinateTransform) -> SpatialForceVec:
        R = transform.rotation()
        ang = _apply(R, self.ang) + _apply(transform.trans_cross_rot(), self.lin)
        return SpatialForceVec(_apply(R, self.lin), ang)


@dataclass(frozen=True)
class SpatialInertia:
    """The mass (1,), centre of mass (1, 3) and inertia about it (1, 3, 3) or (3, 3) of a body."""

    mass: Tensor
    com: Tensor
    inertia_mat: Tensor

    def multiply_motion_vec(self, smv: SpatialMotionVec) -> SpatialForceVec:
        """Return the momentum of a velocity, or the force of an acceleration."""
        moment = self.com * self.mass
        lin = self.mass * smv.lin - cross_product(moment, smv.ang)
        return SpatialForceVec(lin, _apply(self._about_origin(), smv.ang) + cross_product(moment, smv.lin))

    def get_spatial_mat(self) -> Tensor:
        """Return the inertia as a matrix (6, 6), angular before linear."""
        H = vector3_to_skew_symm_matrix(self.com * self.mass)[0]
        top = torch.cat([self._about_origin()[0], H], 1)
        return torch.cat([top, torch.cat([-H, self.mass * torch.eye(3, dtype=H.dtype)], 1)])

    def _about_origin(self) -> Tensor:
        C = vector3_to_skew_symm_matrix(self.com)
        return self.inertia_mat.reshape(1, 3, 3) + self.mass * (C @ C.mT)


def _apply(R: Tensor, x: Tensor) -> Tensor:
    return (R @ x[..., None])[..., 0]


def _blocks(diagonal: Tensor, below: Tensor) -> Tensor:
    top = torch.cat([diagonal, torch.zeros_like(diagonal)], -1)
    return torch.cat([top, torch.cat([below, diagonal], -1)], -2)
