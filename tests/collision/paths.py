"""Random paths of one solid past another: the smallest gap may not change by more than the solid moves.

A gap that jumps throws bodies that touch, and no derivative shows it. Paths are long and short, so that large jumps and small ones
are seen, and go from apart to deep inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]

PATHS, STEPS = 48, 160
ROUNDING = 1e-9
"""Change of a gap that no motion needs [m]."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Poses along paths, in the frame of the other solid."""

    rotations: Array
    """Shape (PATHS, STEPS, 3, 3)."""
    positions: Array
    """Positions [m], shape (PATHS, STEPS, 3)."""
    motion: Array
    """Furthest that a point of the solid moves from each pose to the next [m], shape (PATHS, 1)."""
    velocity: Array
    """Change of position from each pose to the next [m], shape (PATHS, 3)."""
    turn: Array
    """Rotation from each pose to the next, in world axes [rad], shape (PATHS, 3)."""

    @property
    def poses(self) -> Array:
        """Rotation, column by column, and position, shape (PATHS * STEPS, 12)."""
        columns = np.swapaxes(self.rotations, -1, -2).reshape(-1, 9)
        return np.concatenate([columns, self.positions.reshape(-1, 3)], 1)

    @property
    def quaternions(self) -> Array:
        """Position and quaternion w, x, y, z, shape (PATHS * STEPS, 7)."""
        turns = Rotation.from_matrix(self.rotations.reshape(-1, 3, 3)).as_quat()
        return np.concatenate([self.positions.reshape(-1, 3), turns[:, [3, 0, 1, 2]]], 1)


def random_paths(random: np.random.Generator, radius: float, middles: Array, tilt: float = np.pi) -> Paths:
    """Draw paths of a solid of a radius [m] through middles (PATHS, 3), turned by up to `tilt` [rad]."""
    reach = radius * 10 ** random.uniform(-2.5, 0, (PATHS, 1))
    across = random.normal(size=(PATHS, 3)) * reach
    around = random.normal(size=(PATHS, 3)) * reach / radius * min(tilt, 1.0)
    start = random.normal(size=(PATHS, 3)) * min(tilt, 1.0) if tilt < np.pi else None
    first = Rotation.random(PATHS, random) if start is None else Rotation.from_rotvec(start)
    t = np.linspace(-0.5, 0.5, STEPS)
    turned = [Rotation.from_rotvec(x * around) * first for x in t]
    positions = middles[:, None] + t[:, None] * across[:, None]
    step = 1 / (STEPS - 1)
    motion = step * (np.linalg.norm(across, axis=1) + radius * np.linalg.norm(around, axis=1))
    rotations = np.stack([x.as_matrix() for x in turned], 1)
    return Paths(rotations, positions, motion[:, None], step * across, step * around)


def fastest(gaps: Array, paths: Paths, deepest: float = np.inf, furthest: float = np.inf) -> tuple[float, str]:
    """Return the largest change of the smallest of the gaps (PATHS * STEPS, n) by the motion of the solid, and where it is.

    deepest, furthest: steps from one depth below this to another, and from one distance above this to another, count for
    nothing [m].
    """
    least = gaps.min(-1).reshape(PATHS, STEPS)
    counts = np.maximum(least[:, 1:], least[:, :-1]) > -deepest
    counts &= np.minimum(least[:, 1:], least[:, :-1]) < furthest
    change = counts * np.maximum(np.abs(np.diff(least, axis=1)) - ROUNDING, 0) / paths.motion
    i, k = np.unravel_index(int(change.argmax()), change.shape)
    before, after, moved = 1e3 * least[i, k], 1e3 * least[i, k + 1], 1e3 * paths.motion[i, 0]
    place = f"path {i}, step {k}: {before:.6g} -> {after:.6g} mm, moved {moved:.3g} mm"
    return float(change.max()), place


def depths(gaps: Array) -> tuple[float, float]:
    """Return the share of poses that overlap, and the deepest [m]."""
    least = gaps.min(-1)
    return float((least < 0).mean()), float(-least.min())
