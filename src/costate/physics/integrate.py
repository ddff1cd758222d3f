"""Moving configurations along velocities, and finding the velocity between two: q and v differ for quaternions."""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX
from numpy.typing import NDArray

from costate.model.model import Joint, Model
from costate.physics.joints import JOINTS, JointKind


def integrate(model: Model, q: SX, v: SX, dt: SX | float = 1.0) -> SX:
    """q after the time dt [s] at constant v, shape (nq,). Exact on the group: floating joints follow a screw motion."""
    parts = [kind.integrate(q[a], v[b] * dt) for _, kind, a, b in _moving(model)]
    return ca.vertcat(*parts) if parts else SX(0, 1)


def difference(model: Model, q0: SX, q1: SX) -> SX:
    """The v for which integrate(q0, v, 1) is q1, the shortest one for rotations, shape (nv,)."""
    parts = [kind.difference(q0[a], q1[a]) for _, kind, a, _ in _moving(model)]
    return ca.vertcat(*parts) if parts else SX(0, 1)


def velocity_map(model: Model, q: SX) -> SX:
    """N(q) with dq/dt = N(q) v, shape (nq, nv); derivatives in q times N are derivatives in the tangent space."""
    parts = [kind.rate(q[a]) for _, kind, a, _ in _moving(model)]
    return ca.diagcat(*parts) if parts else SX(0, 0)


def neutral(model: Model) -> NDArray[np.float64]:
    """The configuration at which every link is where its joint's origin says, shape (nq,)."""
    return np.array([x for _, kind, _, _ in _moving(model) for x in kind.neutral], float)


def _moving(model: Model) -> list[tuple[Joint, JointKind, slice, slice]]:
    """Joints with coordinates of their own, in order, with the places of these in q and v."""
    rows = []
    for joint, a, b in zip(model.joints, model.q_index, model.v_index, strict=True):
        if joint.nv:
            rows.append((joint, JOINTS[joint.kind], slice(a, a + joint.nq), slice(b, b + joint.nv)))
    return rows
