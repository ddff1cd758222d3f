"""Parametrisations of rotations."""

from __future__ import annotations

from typing import Any

import casadi as ca
import torch
from casadi import SX
from torch import Tensor

from costate.robot.params.parametrisation import Parametrisation


class Rotation(Parametrisation):
    """A rotation matrix start * exp([raw]x). `raw` is a rotation vector [rad], zero at the start; for a joint's "rotation"."""

    start: Tensor

    def __init__(self, init: Any = None):
        super().__init__()
        self.register_buffer("start", torch.eye(3, dtype=torch.float64))
        if init is not None:
            self.set(init)

    def value(self, raw: Tensor) -> Tensor:
        return self.start.to(raw.dtype) @ torch.linalg.matrix_exp(skew(raw))

    def inverse(self, value: Tensor) -> Tensor:
        self.start = value.to(self.start.dtype).clone()
        return torch.zeros(3, dtype=value.dtype)


class RollPitchYaw(Parametrisation):
    """A rotation matrix Rz(yaw) Ry(pitch) Rx(roll), as URDF gives it; `raw` are the angles [rad]. Singular at pitch +-pi/2."""

    def value(self, raw: Tensor) -> Tensor:
        return rpy_matrix(raw)

    def symbolic(self, raw: SX) -> SX:
        return symbolic_rpy_matrix(raw)

    def inverse(self, value: Tensor) -> Tensor:
        R = value
        roll = torch.atan2(R[2, 1], R[2, 2])
        pitch = torch.atan2(-R[2, 0], torch.hypot(R[2, 1], R[2, 2]))
        return torch.stack([roll, pitch, torch.atan2(R[1, 0], R[0, 0])])


def rpy_matrix(rpy: Tensor) -> Tensor:
    """Return Rz(yaw) Ry(pitch) Rx(roll) of angles (..., 3) [rad], shape (..., 3, 3)."""
    c, s = torch.cos(rpy), torch.sin(rpy)
    (cr, cp, cy), (sr, sp, sy) = c.unbind(-1), s.unbind(-1)
    rows = [
        torch.stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr], -1),
        torch.stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr], -1),
        torch.stack([-sp, cp * sr, cp * cr], -1),
    ]
    return torch.stack(rows, -2)


def symbolic_rpy_matrix(rpy: SX) -> SX:
    """Return the same as an expression."""
    (cr, cp, cy), (sr, sp, sy) = ca.vertsplit(ca.cos(rpy)), ca.vertsplit(ca.sin(rpy))
    rows = [
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    ]
    return ca.vertcat(*[ca.horzcat(*row) for row in rows])


def skew(w: Tensor) -> Tensor:
    """Return the matrices [w]x (..., 3, 3) of vectors (..., 3), with [w]x b = w x b."""
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*w.shape[:-1], 3, 3)
