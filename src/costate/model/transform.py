"""Poses of frames in other frames."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from costate.core.arrays import Array


def zeros() -> Array:
    """Return the origin, shape (3,)."""
    return np.zeros(3)


@dataclass(frozen=True, eq=False)
class Transform:
    """Pose of a frame B in a frame A: p_A = rotation @ p_B + translation."""

    rotation: Array = field(default_factory=lambda: np.eye(3))
    """Rotation matrix R_AB, shape (3, 3)."""
    translation: Array = field(default_factory=zeros)
    """Position p_AB of the origin of B [m], shape (3,)."""

    def __matmul__(self, other: Transform) -> Transform:
        return Transform(self.rotation @ other.rotation, self.rotation @ other.translation + self.translation)

    def inverse(self) -> Transform:
        """Return the pose of A in B."""
        return Transform(self.rotation.T, -self.rotation.T @ self.translation)
