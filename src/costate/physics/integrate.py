"""Configurations as points of a group: moving along a velocity, and finding the velocity between two of them.

For joints with quaternions q and v have different lengths, so neither is a plain sum or difference.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.model.joint import Joint
from costate.model.model import Model
from costate.physics.joints import JOINTS, JointKind


def integrate(model: Model, q: SX, v: SX, dt: SX | float = 1.0) -> SX:
    """Return q after the time dt [s] at constant v, shape (nq,).

    The motion is exact on the group: a floating joint follows a screw.
    """
    parts = [kind.integrate(q[a], v[b] * dt) for _, kind, a, b in _moving(model)]
    return ca.vertcat(*parts) if parts else SX(0, 1)


def difference(model: Model, q0: SX, q1: SX) -> SX:
    """Return the v for which integrate(q0, v, 1) is q1, shape (nv,). Rotations take the shorter way round."""
    parts = [kind.difference(q0[a], q1[a]) for _, kind, a, _ in _moving(model)]
    return ca.vertcat(*parts) if parts else SX(0, 1)


def velocity_map(model: Model, q: SX) -> SX:
    """Return N(q) with dq/dt = N(q) v, shape (nq, nv). Derivatives in q times N are derivatives in the tangent space."""
    parts = [kind.rate(q[a]) for _, kind, a, _ in _moving(model)]
    return ca.diagcat(*parts) if parts else SX(0, 0)


def neutral(model: Model) -> NDArray[np.float64]:
    """Return the configuration at which every link coincides with its joint's frame, shape (nq,)."""
    return np.array([x for _, kind, _, _ in _moving(model) for x in kind.neutral], float)


def _moving(model: Model) -> list[tuple[Joint, JointKind, slice, slice]]:
    """List the joints that have coordinates of their own, in order, with the slices of q and v that hold them."""
    rows = []
    for joint, a, b in zip(model.joints, model.q_index, model.v_index, strict=True):
        if joint.nv:
            rows.append((joint, JOINTS[joint.kind], slice(a, a + joint.nq), slice(b, b + joint.nv)))
    return rows
