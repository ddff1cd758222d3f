"""States of MJCF: coordinates in our order, and the keyframes that a file names."""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.core.arrays import Array
from costate.model.model import Keyframe
from costate.model.rotation import from_wxyz

_FREE = 0  # mjtJoint
_SIZES = {_FREE: 7, 1: 4}
"""Number of coordinates by mjtJoint, where it is not one."""


def read_keyframes(mj: Any) -> tuple[Keyframe, ...]:
    """Return the states that a file names; one without a name is called by its number."""
    return tuple(_keyframe(mj, k) for k in range(mj.nkey))


def coordinates(mj: Any, qpos: Array) -> Array:
    """Return all coordinates (nq,) from MuJoCo's."""
    return np.concatenate([np.zeros(0), *(joint_coordinates(mj, j, qpos) for j in range(mj.njnt))])


def joint_coordinates(mj: Any, j: int, qpos: Array) -> Array:
    """Return the coordinates of a joint among all, with a quaternion as x, y, z, w."""
    start = int(mj.jnt_qposadr[j])
    q = np.array(qpos[start : start + _SIZES.get(int(mj.jnt_type[j]), 1)])
    return q if len(q) == 1 else np.concatenate([q[:-4], q[-3:], q[-4:-3]])


def _keyframe(mj: Any, k: int) -> Keyframe:
    q, v = coordinates(mj, mj.key_qpos[k]), np.array(mj.key_qvel[k])
    for j in range(mj.njnt):
        if int(mj.jnt_type[j]) == _FREE:  # MuJoCo has the velocity of a free body's origin in world axes
            at, dof = int(mj.jnt_qposadr[j]), int(mj.jnt_dofadr[j])
            v[dof : dof + 3] = from_wxyz(mj.key_qpos[k][at + 3 : at + 7]).T @ v[dof : dof + 3]
    return Keyframe(mj.key(k).name or str(k), q, v, np.array(mj.key_act[k]), np.array(mj.key_ctrl[k]))
