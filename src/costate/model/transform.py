"""Poses of frames in other frames, and the forms in which they are given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from costate.core.arrays import Array
from costate.core.constants import constant
from costate.model.rotation import from_rpy, from_wxyz, to_rpy, to_xyzw

ORTHOGONAL = 1e-5
"""Error of a rotation matrix that is taken for rounding (float32) and removed; a larger one is a mistake."""
EXACT = 1e-14
"""Error of a rotation matrix that is left as it is."""
FORMS = (
    "(x, y, z), (position, rpy), (position, quaternion xyzw), (position, rotation matrix), the 7 coordinates of a floating body, a "
    "4x4 matrix or a cs.Transform"
)


def zeros() -> Array:
    """Return the origin, shape (3,)."""
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class Transform:
    """Pose of a frame B in a frame A: p_A = rotation @ p_B + translation.

    `Transform.at((0, 0, 1), rpy=(0, 0, 1.57))` makes one of a position and angles or a quaternion.
    """

    rotation: Array = field(default_factory=lambda: np.eye(3))
    """Rotation matrix R_AB, shape (3, 3)."""
    translation: Array = field(default_factory=zeros)
    """Position p_AB of the origin of B [m], shape (3,)."""

    def __post_init__(self) -> None:
        for name, shape in (("rotation", (3, 3)), ("translation", (3,))):
            object.__setattr__(self, name, _numbers(getattr(self, name), f"{name} of a transform", shape))

    @staticmethod
    def at(
        position: ArrayLike = (0.0, 0.0, 0.0), rpy: ArrayLike | None = None, quaternion: ArrayLike | None = None
    ) -> Transform:
        """Return the pose of a position [m] (3,) and an orientation: roll, pitch, yaw [rad] (3,) or a quaternion xyzw (4,)."""
        return placed("the transform", None, position, rpy, quaternion)

    @property
    def rpy(self) -> Array:
        """Roll, pitch, yaw [rad], shape (3,)."""
        return to_rpy(self.rotation)

    @property
    def quaternion(self) -> Array:
        """Orientation as a unit quaternion xyzw with its largest component positive, shape (4,)."""
        return to_xyzw(self.rotation)

    @property
    def matrix(self) -> Array:
        """Homogeneous matrix, shape (4, 4)."""
        rows = np.column_stack([self.rotation, self.translation])
        return np.concatenate([rows, [[0.0, 0.0, 0.0, 1.0]]])

    @property
    def coordinates(self) -> Array:
        """Coordinates of a floating joint at this pose: position, quaternion xyzw, shape (7,)."""
        return np.concatenate([self.translation, self.quaternion])

    def __matmul__(self, other: Transform) -> Transform:
        return Transform(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)

    def inverse(self) -> Transform:
        """Return the pose of A in B."""
        return Transform(self.rotation.T, -self.rotation.T @ self.translation)

    def is_identity(self) -> bool:
        """Return whether the two frames are the same, to the last bit."""
        return np.array_equal(self.rotation, np.eye(3)) and not self.translation.any()


Placement = Transform | ArrayLike | tuple[ArrayLike, ArrayLike]
"""A pose in any form that `as_transform` takes."""


def as_transform(value: Any, what: str = "the pose", parameter: str | None = None) -> Transform:
    """Return a pose that is given in any of the FORMS.

    what: what it is the pose of, for errors; parameter: what to use in place of a tensor that requires a gradient.
    """
    if isinstance(value, Transform):
        _rotation(value.rotation, what)
        return value
    plain = constant(value, what, parameter)
    if isinstance(plain, list | tuple) and len(plain) == 2:
        position, turn = (_array(x, what, value) for x in plain)
        return _pair(position, turn, what, value)
    found = _array(plain, what, value)
    if found.shape == (3,):
        return Transform(translation=found)
    if found.shape == (7,):
        return _pair(found[:3], found[3:], what, value)
    if found.shape == (2, 3):
        return _pair(found[0], found[1], what, value)
    if found.shape != (4, 4):
        raise _refused(what, value)
    if np.abs(found[3] - (0, 0, 0, 1)).max() > EXACT:
        raise ValueError(f"{what}: the last row of a 4x4 matrix must be 0, 0, 0, 1, got {found[3].tolist()}")
    return Transform(_rotation(found[:3, :3], what), found[:3, 3])


def place(owner: Any, name: str, what: str, parameter: str | None = None) -> None:
    """Make a field of a frozen dataclass a transform, in whatever form it is given. For use in __post_init__."""
    given = getattr(owner, name)
    if given is not None and not isinstance(given, Transform):
        object.__setattr__(owner, name, as_transform(given, what, parameter))


def placed(
    what: str,
    pose: Any = None,
    position: Any = None,
    rpy: Any = None,
    quaternion: Any = None,
    parameter: str | None = None,
) -> Transform:
    """Return the pose of something that is placed by a pose, or by a position and an orientation."""
    if pose is not None:
        if any(x is not None for x in (position, rpy, quaternion)):
            raise ValueError(f"{what}: give pose=, or position= with rpy= or quaternion=, not both")
        return as_transform(pose, what, parameter)
    if rpy is not None and quaternion is not None:
        raise ValueError(f"{what}: give rpy= or quaternion=, not both")
    at = np.zeros(3) if position is None else _numbers(position, f"position of {what}", (3,), parameter)
    if quaternion is not None:
        return Transform(_turn(_numbers(quaternion, f"quaternion of {what}", (4,), parameter), what), at)
    if rpy is None:
        return Transform(translation=at)
    return Transform(from_rpy(_numbers(rpy, f"rpy of {what}", (3,), parameter)), at)


def _pair(position: Array, turn: Array, what: str, given: Any) -> Transform:
    if position.shape != (3,) or turn.shape not in ((3,), (4,), (3, 3)):
        raise _refused(what, given)
    if turn.shape == (3, 3):
        return Transform(_rotation(turn, what), position)
    return Transform(from_rpy(turn) if turn.shape == (3,) else _turn(turn, what), position)


def _turn(quaternion: Array, what: str) -> Array:
    """Return the rotation matrix of a quaternion xyzw of any length but 0."""
    if not np.linalg.norm(quaternion) > 0:
        raise ValueError(
            f"{what}: the quaternion is zero, which is no rotation; that of no turn is (0, 0, 0, 1): x, y, z, w"
        )
    return from_wxyz(np.roll(quaternion, 1))


def _rotation(R: Array, what: str) -> Array:
    """Return a rotation matrix without the errors of rounding; raise an error if it is none."""
    error = float(np.abs(R @ R.T - np.eye(3)).max())
    if not error < ORTHOGONAL or np.linalg.det(R) < 0:
        why = "it mirrors" if error < ORTHOGONAL else f"R R^T differs from the identity by {error:.2g}"
        raise ValueError(f"{what}: the matrix is not a rigid transform, because {why}; scale shapes by their sizes")
    if error < EXACT:
        return R
    U, _, V = np.linalg.svd(R)
    return U @ V


def _array(value: Any, what: str, given: Any) -> Array:
    try:
        found = np.asarray(value, float)
    except (TypeError, ValueError):
        raise _refused(what, given) from None
    if not np.isfinite(found).all():
        raise ValueError(f"{what} is {given!r}; expected finite numbers")
    return found


def _numbers(value: Any, what: str, shape: tuple[int, ...], parameter: str | None = None) -> Array:
    plain = constant(value, what, parameter)
    try:
        found = np.asarray(plain, float)
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {value!r}; expected numbers of shape {shape}") from None
    if found.shape != shape:
        raise ValueError(f"{what} has shape {found.shape}; expected {shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{what} is {value!r}; expected finite numbers")
    return found


def _refused(what: str, given: Any) -> TypeError:
    shape = getattr(given, "shape", None)
    told = f"has shape {tuple(shape)}" if shape is not None else f"is {given!r}"
    return TypeError(f"{what} {told}; expected one of {FORMS}")
