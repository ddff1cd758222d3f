"""Passive forces of joints: viscous damping, Coulomb friction and springs; and the inertia of rotors."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.model.model import Model
from costate.physics.algebra import quaternion
from costate.physics.joints import JOINTS
from costate.physics.params import Parameters


@dataclass(frozen=True)
class Passive:
    """Selection of the passive forces that act."""

    damping: bool = True
    """Switch of viscous damping, damping * v."""
    friction: bool = True
    """Switch of Coulomb friction, smoothed: friction * tanh(v / friction_speed)."""
    springs: bool = True
    """Switch of springs, stiffness * (q - rest). A joint with several coordinates has an isotropic spring around its
    neutral position."""
    friction_speed: float = 1e-2
    """Speed at which friction reaches 76 % of its full value [rad/s or m/s]. It is small compared with working speeds,
    but large enough for a step of a millisecond to resolve it with usual inertias."""


ALL_PASSIVE = Passive()


def resistance(model: Model, params: Parameters, q: SX, v: SX, passive: Passive | None) -> SX:
    """Return the torques needed to move against the passive forces [N m or N], shape (nv,), positive along v."""
    if passive is None:
        return SX(model.nv, 1)
    torques: list[SX] = [SX(1, 1)] * model.nv
    for i, joint in enumerate(model.joints):
        if joint.kind == "fixed":
            continue
        kind = JOINTS[joint.kind]
        qi, vi = model.q_index[i], model.v_index[i]
        scale = joint.mimic.multiplier if joint.mimic else 1.0
        offset = joint.mimic.offset if joint.mimic else 0.0
        speed = scale * v[vi : vi + kind.nv]
        own = SX(kind.nv, 1)
        if passive.damping:
            own += params["damping", joint.name] * speed
        friction = params["friction", joint.name]
        if passive.friction and friction.nnz():
            own += friction * ca.tanh(speed / passive.friction_speed)
        stiffness = params["stiffness", joint.name]
        if passive.springs and stiffness.nnz():
            own += stiffness * deflection(model, params, i, scale * q[qi : qi + kind.nq] + offset)
        for k in range(kind.nv):
            torques[vi + k] = torques[vi + k] + scale * own[k]
    return ca.vertcat(*torques) if torques else SX(0, 1)


def deflection(model: Model, params: Parameters, joint: int, q: SX) -> SX:
    """Return the deflection of a joint's spring along each of its directions, shape (nv,).

    q: The joint's own coordinates.
    """
    own = model.joints[joint]
    kind = JOINTS[own.kind]
    if kind.nv == 1:
        return kind.deflect(q) - params["rest", own.name]
    return kind.deflect(q if own.rest_at is None else _from_rest(SX(own.rest_at), q))


def _from_rest(rest: SX, q: SX) -> SX:
    """Return the coordinates of a spherical or floating joint as seen from others."""
    turn = quaternion.product(quaternion.conjugate(rest[-4:]), q[-4:])
    if q.numel() == 4:
        return turn
    return ca.vertcat(quaternion.to_rotation(rest[3:]).T @ (q[:3] - rest[:3]), turn)


def armature(model: Model, params: Parameters) -> SX:
    """Return the rotor inertia that each velocity sees [kg m^2 or kg], shape (nv,)."""
    rotors: list[SX] = [SX(1, 1)] * model.nv
    for i, joint in enumerate(model.joints):
        if joint.kind == "fixed":
            continue
        scale = joint.mimic.multiplier if joint.mimic else 1.0
        for k in range(model.v_index[i], model.v_index[i] + JOINTS[joint.kind].nv):
            rotors[k] = rotors[k] + scale**2 * params["armature", joint.name]
    return ca.sparsify(ca.vertcat(*rotors)) if rotors else SX(0, 1)
