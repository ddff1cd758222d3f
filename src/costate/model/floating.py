"""Floating joints of the world: their coordinates are the pose of their link in the world, and nothing else.

A file or a user may give such a joint a pose of its own. It is where the link starts, so it moves from the joint to the
configuration to start from (`Model.home`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from costate.core.arrays import Array
from costate.model.joint import Joint
from costate.model.rotation import from_wxyz
from costate.model.transform import Transform


def float_in_world(world: str, joints: Sequence[Joint], home: Array | None) -> tuple[tuple[Joint, ...], Array | None]:
    """Return joints and home such that coordinates of floating joints that hang on the world are poses in it.

    world: the root link. home: configuration to start from (nq,); None: the neutral one. Motions stay the same.
    """
    at = {world: Transform()}  # links that do not move
    found: list[Joint] = []
    start: Array | None = None if home is None else np.array(home, float)
    first = 0
    for j in joints:
        if j.kind == "fixed" and j.parent in at:
            at[j.child] = at[j.parent] @ j.origin
        elif j.kind == "floating" and j.parent in at and not (given := at[j.parent] @ j.origin).is_identity():
            start = neutral_home(joints) if start is None else start
            start[first : first + 7] = _seen_from(given, start[first : first + 7])
            rest = given.coordinates if j.rest_at is None else _seen_from(given, j.rest_at)
            j = replace(j, parent=world, origin=Transform(), rest_at=rest)
        found.append(j)
        first += j.nq
    return tuple(found), start


def neutral_home(joints: Sequence[Joint]) -> Array:
    """Return the configuration at which every link coincides with its joint's frame, shape (nq,)."""
    parts = [np.zeros(0)]
    for j in joints:
        quaternion = j.kind in ("floating", "spherical") and not j.mimic
        parts.append(np.r_[np.zeros(j.nq - 1), 1.0] if quaternion else np.zeros(j.nq))
    return np.concatenate(parts)


def _seen_from(frame: Transform, q: Array) -> Array:
    """Return coordinates of a floating joint in a frame as coordinates in the world."""
    return (frame @ Transform(from_wxyz(np.roll(q[3:], 1)), q[:3])).coordinates
