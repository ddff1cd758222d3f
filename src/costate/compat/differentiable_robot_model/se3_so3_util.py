"""Exponential and logarithm maps with the interface of `differentiable_robot_model.se3_so3_util`.

They take one rotation (3, 3) or one motion (4, 4) at a time.

A twist ("wrench" there) is (v, omega): linear, then angular. Right and differentiable at zero and up to half a turn, so `epsilon`
has no influence where it kept a division from failing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from costate.compat.differentiable_robot_model.utils import convert_into_pytorch_tensor
from costate.robot.params import skew

assert_epsilon = 1.0e-3
"""Largest difference of a matrix from a rotation, a rigid motion or a skew-symmetric one."""
SMALL = 1e-2
"""Angle [rad] below which series are used: their first neglected term is SMALL^6 / 40,000, below float64's rounding."""


def getSkewSymMatFromVec3(omega: Tensor) -> Tensor:
    """Return [omega]x, (3, 3)."""
    return skew(omega.reshape(3))


def getVec3FromSkewSymMat(omegahat: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return omega (3,) of [omega]x. A matrix that is not skew-symmetric to rounding is refused."""
    scale = max(1.0, float(omegahat.detach().abs().max()))
    symmetric = float((omegahat + omegahat.mT).detach().abs().max())
    tolerance = max(epsilon, 8 * torch.finfo(omegahat.dtype).eps) * scale
    if not symmetric <= tolerance:
        raise AssertionError(f"not skew-symmetric: its symmetric part is {symmetric / 2:g}, omegahat =\n{omegahat}")
    half = (omegahat - omegahat.mT) / 2
    return torch.stack([half[2, 1], half[0, 2], half[1, 0]])


def expMapso3(omegahat: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return the rotation of [omega]x."""
    getVec3FromSkewSymMat(omegahat, epsilon)
    return torch.linalg.matrix_exp(omegahat)


def logMapSO3(R: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return [omega]x of a rotation, |omega| <= pi."""
    _check_rotation(R)
    return getSkewSymMatFromVec3(_rotation_vector(R))


def expMapse3(kseehat: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return the rigid motion (4, 4) of a twist given as a matrix."""
    if not float(kseehat[3].detach().norm()) < assert_epsilon:
        raise AssertionError(f"the last row of a twist is zero, but kseehat =\n{kseehat}")
    getVec3FromSkewSymMat(kseehat[:3, :3], epsilon)
    return torch.linalg.matrix_exp(kseehat)


def logMapSE3(T: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return the twist of a rigid motion as a matrix (4, 4)."""
    _check_motion(T)
    omega = _rotation_vector(T[:3, :3])
    W = getSkewSymMatFromVec3(omega)
    inverse = torch.eye(3, dtype=T.dtype) - W / 2 + _log_coefficient(omega) * (W @ W)
    top = torch.cat([W, (inverse @ T[:3, 3])[:, None]], 1)
    return torch.cat([top, torch.zeros_like(top[:1])])


def integrateAxisAngle(axis_angle: Tensor, omega: Tensor, dt: float) -> Tensor:
    """Return the rotation vector after turning with angular velocity omega [rad/s], world axes, for dt [s]."""
    return _rotation_vector(_exp(omega * dt) @ _exp(axis_angle))


def computeAngularError(source_axis_angle: Tensor, target_axis_angle: Tensor) -> Tensor:
    """Return the rotation vector that leads from source to target, world axes."""
    return _rotation_vector(_exp(target_axis_angle) @ _exp(source_axis_angle).T)


def convertAxisAngleToQuaternion(axis_angle: Any, epsilon: float = 1.0e-5) -> Tensor:
    """Return the quaternion xyzw of a rotation vector (3,)."""
    w = convert_into_pytorch_tensor(axis_angle)
    half = _safe_norm(w) / 2
    return torch.cat([w * torch.sinc(half / torch.pi) / 2, torch.cos(half)[None]])


def convertQuaternionToAxisAngle(quat: Any, alpha: float = 0.05, epsilon: float = 1.0e-15) -> Tensor:
    """Return the rotation vector (3,), |omega| <= 2 pi, of a quaternion xyzw whose norm is 1 within alpha."""
    x = convert_into_pytorch_tensor(quat)
    norm = float(x.detach().norm())
    if not 1 - alpha < norm < 1 + alpha:
        raise AssertionError(f"a unit quaternion is expected, but its norm is {norm:g}")
    return _vector_of_quaternion(x / x.norm())


def getKseehatFromWrench(wrench: Tensor) -> Tensor:
    """Return a twist (6,) as a matrix (4, 4)."""
    top = torch.cat([getSkewSymMatFromVec3(wrench[3:6]), wrench[:3, None]], 1)
    return torch.cat([top, torch.zeros_like(top[:1])])


def getWrenchFromKseehat(kseehat: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return the twist (6,) of a matrix (4, 4)."""
    return torch.cat([kseehat[:3, 3], getVec3FromSkewSymMat(kseehat[:3, :3], epsilon)])


def getHomogeneousTransformMatrixFromAxes(orig: Tensor, axis_x: Tensor, axis_y: Tensor, axis_z: Tensor) -> Tensor:
    """Return the rigid motion (4, 4) with these columns."""
    top = torch.stack([x.reshape(3) for x in (axis_x, axis_y, axis_z, orig)], 1)
    return torch.cat([top, top.new_tensor([[0.0, 0.0, 0.0, 1.0]])])


def getAxesFromHomogeneousTransformMatrix(T: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the origin, then the axes x, y and z."""
    _check_last_row(T)
    return T[:3, 3], T[:3, 0], T[:3, 1], T[:3, 2]


def getInverseHomogeneousTransformMatrix(T: Tensor, epsilon: float = 1.0e-14) -> Tensor:
    """Return the inverse of a rigid motion."""
    _check_motion(T)
    R = T[:3, :3].T
    return torch.cat([torch.cat([R, -(R @ T[:3, 3:])], 1), T[3:]])


def _exp(w: Tensor) -> Tensor:
    return torch.linalg.matrix_exp(getSkewSymMatFromVec3(w))


def _rotation_vector(R: Tensor) -> Tensor:
    """Return the rotation vector by way of the quaternion, which is accurate at any angle: its largest entry is the divisor."""
    d = torch.diagonal(R)
    squares = 1 + torch.stack([2 * d[0] - d.sum(), 2 * d[1] - d.sum(), 2 * d[2] - d.sum(), d.sum()])
    k = int(squares.detach().argmax())
    a, b = R + R.T, R - R.T
    rows = (
        torch.stack([squares[0], a[0, 1], a[0, 2], b[2, 1]]),
        torch.stack([a[0, 1], squares[1], a[1, 2], b[0, 2]]),
        torch.stack([a[0, 2], a[1, 2], squares[2], b[1, 0]]),
        torch.stack([b[2, 1], b[0, 2], b[1, 0], squares[3]]),
    )
    x = rows[k] / (2 * squares[k].sqrt())
    return _vector_of_quaternion(-x if bool(x[3] < 0) else x)


def _vector_of_quaternion(x: Tensor) -> Tensor:
    """Return angle / sin(angle / 2) times the vector part; near zero by the series of 2 asin(s) / s."""
    s = _safe_norm(x[:3])
    if float(s.detach()) < SMALL and float(x[3].detach()) > 0:
        return x[:3] * (2 + s**2 / 3 + 3 * s**4 / 20)
    return x[:3] * (2 * torch.atan2(s, x[3]) / s)


def _safe_norm(w: Tensor) -> Tensor:
    """Return |w|, with a derivative at zero too."""
    square = (w * w).sum()
    return torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), 0.0)


def _log_coefficient(omega: Tensor) -> Tensor:
    """Return (1 - (angle / 2) cot(angle / 2)) / angle^2."""
    angle = _safe_norm(omega)
    if float(angle.detach()) < SMALL:
        return 1 / 12 + angle**2 / 720 + angle**4 / 30240
    return (1 - angle / 2 / torch.tan(angle / 2)) / angle**2


def _check_rotation(R: Tensor) -> None:
    if R.shape != (3, 3) or not abs(float(torch.linalg.det(R.detach())) - 1) < assert_epsilon:
        raise AssertionError(f"a rotation matrix (3, 3) is expected, but R =\n{R}")


def _check_last_row(T: Tensor) -> None:
    last = T[3].detach() - T.new_tensor([0.0, 0.0, 0.0, 1.0])
    if T.shape != (4, 4) or not float(last.norm()) < assert_epsilon:
        raise AssertionError(f"a rigid motion (4, 4) with last row 0 0 0 1 is expected, but T =\n{T}")


def _check_motion(T: Tensor) -> None:
    _check_last_row(T)
    _check_rotation(T[:3, :3])
