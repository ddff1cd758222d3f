"""Rotation matrices from and to the angles and quaternions of robot files."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from costate.core.arrays import Array

# Rounding leaves 6e-17 where cos(pi / 2) should be 0. Exact zeros matter: they disappear from the compiled kernels.
_ROUNDING = 1e-15


def clean(matrix: Array) -> Array:
    """Set entries that are rounding noise around 0 and +-1 to exactly that."""
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < _ROUNDING, nearest + 0.0, matrix)


def from_rpy(rpy: ArrayLike) -> Array:
    """Return R = Rz(yaw) Ry(pitch) Rx(roll), the fixed-axis angles of URDF. Shape (3, 3) from (3,) [rad]."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return clean(
        np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
    )


def to_rpy(R: Array) -> Array:
    """Return the angles of `from_rpy`, shape (3,).

    Roll is read off after yaw has been removed, so that the product is right also next to pitch = +-pi/2, where roll
    and yaw each are ill-defined.
    """
    yaw = np.arctan2(R[1, 0], R[0, 0])
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    s, c = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def from_wxyz(quaternion: ArrayLike) -> Array:
    """Return the rotation matrix of a quaternion in MuJoCo's order w, x, y, z; it need not have unit length."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return clean(
        np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
    )


def to_xyzw(R: Array) -> Array:
    """Return the unit quaternion x, y, z, w of a rotation matrix, its largest component positive, shape (4,)."""
    squares = np.array([1 + 2 * R[k, k] - R.trace() for k in range(3)] + [1 + R.trace()])  # 4 x^2, 4 y^2, 4 z^2, 4 w^2
    products = np.array(
        [
            [0.0, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[2, 1] - R[1, 2]],
            [0.0, 0.0, R[1, 2] + R[2, 1], R[0, 2] - R[2, 0]],
            [0.0, 0.0, 0.0, R[1, 0] - R[0, 1]],
            [0.0, 0.0, 0.0, 0.0],
        ]
    )
    outer = products + products.T + np.diag(squares)  # 4 x x^T; any row is the quaternion but for its length
    largest = outer[np.argmax(squares)]
    return largest / np.linalg.norm(largest)


def about_axis(axis: ArrayLike, angle: float) -> Array:
    """Return the rotation by an angle [rad] about a unit axis (Rodrigues)."""
    x, y, z = np.asarray(axis, float)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return clean(np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K)


def aligning_z(direction: ArrayLike) -> Array:
    """Return a rotation that takes the z axis to a direction: it poses cylinders and capsules along a line."""
    z = np.asarray(direction, float) / np.linalg.norm(direction)
    helper = np.eye(3)[np.argmin(np.abs(z))]
    x = _cross(helper, z)
    x /= np.linalg.norm(x)
    return clean(np.column_stack([x, _cross(z, x), z]))


def _cross(a: Array, b: Array) -> Array:
    """Return a x b, ten times as fast as np.cross."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
