"""Poses of links, batched."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import casadi as ca
from torch import Tensor

from costate.core.numbers import promoted
from costate.kernel import Kernel
from costate.physics.algebra import quaternion


class Pose(NamedTuple):
    """Pose of a frame in the world."""

    position: Tensor
    """Origin [m], shape (..., 3)."""
    rotation: Tensor
    """Rotation matrix with the axes as columns, shape (..., 3, 3)."""

    @property
    def quaternion(self) -> Tensor:
        """Orientation as a unit quaternion xyzw with its largest component positive, shape (..., 4)."""
        return _to_quaternion().apply([self.rotation])[0]

    @staticmethod
    def of(position: Tensor, quaternion: Tensor) -> Pose:
        """Return the pose of a position (..., 3) and a unit quaternion xyzw (..., 4)."""
        position, quaternion = promoted([position, quaternion])
        return Pose(position, _to_rotation().apply([quaternion])[0])


@cache
def _to_quaternion() -> Kernel:
    R = ca.SX.sym("R", 3, 3)
    return Kernel("quaternion", {"rotation": R}, {"quaternion": quaternion.from_rotation(R)})


@cache
def _to_rotation() -> Kernel:
    x = ca.SX.sym("x", 4)
    return Kernel("rotation", {"quaternion": x}, {"rotation": quaternion.to_rotation(x)})
