"""The kinds of joints as a table: the motion a joint allows, its directions, and the relation of q and v.

Joint coordinates are taken in the joint's own frame, whose z axis is the joint axis (`tree.py` puts it there). Each
kind moves along some of the six directions of the child frame, so its motion subspace is a constant selection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.physics.algebra import quaternion
from costate.physics.algebra.spatial import rotation_z, zeros

Displacement = tuple[SX, SX]
"""Rotation (3, 3) and translation (3,) of the child frame in the joint frame."""


@dataclass(frozen=True)
class JointKind:
    """A row of the table; q has nq numbers, v one for each direction of motion."""

    linear: tuple[int, ...]
    """Axes of the child frame along which the joint slides; their velocities come first in v."""
    angular: tuple[int, ...]
    """Axes of the child frame about which the joint turns; their velocities come last in v."""
    neutral: tuple[float, ...]
    """Coordinates q at which child and joint frame coincide."""
    displace: Callable[[SX], Displacement]
    """Function q -> pose of the child in the joint frame."""
    integrate: Callable[[SX, SX], SX]
    """Function (q, v) -> q after moving with the constant child-frame velocity v for one unit of time."""
    difference: Callable[[SX, SX], SX]
    """Function (q0, q1) -> the v with integrate(q0, v) = q1."""
    rate: Callable[[SX], SX]
    """Function q -> N with dq/dt = N v, shape (nq, nv)."""
    deflect: Callable[[SX], SX]
    """Function q -> deflection of an isotropic spring around the neutral position along each direction, shape (nv,)."""

    @property
    def directions(self) -> tuple[int, ...]:
        """Directions of motion as indices into a spatial vector (linear, angular)."""
        return self.linear + tuple(3 + k for k in self.angular)

    @property
    def nq(self) -> int:
        return len(self.neutral)

    @property
    def nv(self) -> int:
        return len(self.linear) + len(self.angular)


def _add(q: SX, v: SX) -> SX:
    return q + v


def _subtract(q0: SX, q1: SX) -> SX:
    return q1 - q0


def _one(q: SX) -> SX:
    return SX(1)


def _same(q: SX) -> SX:
    return q


# --- planar: x, y, angle ----------------------------------------------------------------------------------------------


def _turn(angle: SX) -> SX:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))


def _displace_planar(q: SX) -> Displacement:
    return rotation_z(q[2]), ca.vertcat(q[0], q[1], SX(1, 1))


def _planar_left_jacobian(angle: SX) -> SX:
    """Return V(angle) = [[sin t, cos t - 1], [1 - cos t, sin t]] / t, shape (2, 2)."""
    t2 = angle * angle
    is_small = t2 < quaternion.SMALL
    t = ca.if_else(is_small, 1, angle)
    a = ca.if_else(is_small, 1 - t2 / 6 + t2 * t2 / 120, ca.sin(t) / t)
    b = ca.if_else(is_small, angle * (0.5 - t2 / 24 + t2 * t2 / 720), 2 * ca.sin(t / 2) ** 2 / t)
    return ca.vertcat(ca.horzcat(a, -b), ca.horzcat(b, a))


def _integrate_planar(q: SX, v: SX) -> SX:
    step = _turn(q[2]) @ _planar_left_jacobian(v[2]) @ v[:2]
    return ca.vertcat(q[:2] + step, q[2] + v[2])


def _difference_planar(q0: SX, q1: SX) -> SX:
    angle = q1[2] - q0[2]
    V = _planar_left_jacobian(angle)
    step = _turn(q0[2]).T @ (q1[:2] - q0[:2])
    return ca.vertcat(V.T @ step / (V[0, 0] ** 2 + V[1, 0] ** 2), angle)


def _rate_planar(q: SX) -> SX:
    return ca.diagcat(_turn(q[2]), SX(1))


def _deflect_planar(q: SX) -> SX:
    return ca.vertcat(_turn(q[2]).T @ q[:2], q[2])


# --- spherical: quaternion xyzw ---------------------------------------------------------------------------------------


def _displace_spherical(q: SX) -> Displacement:
    return quaternion.to_rotation(q), zeros()


def _integrate_spherical(q: SX, v: SX) -> SX:
    return quaternion.normalized(quaternion.product(q, quaternion.exp(v)))


def _difference_spherical(q0: SX, q1: SX) -> SX:
    return quaternion.log(quaternion.product(quaternion.conjugate(q0), q1))


def _rate_spherical(q: SX) -> SX:
    """Return the N of dq/dt = q (omega, 0) / 2 = N omega, shape (4, 3)."""
    x, y, z, w = q[0] / 2, q[1] / 2, q[2] / 2, q[3] / 2
    rows = [(w, -z, y), (z, w, -x), (-y, x, w), (-x, -y, -z)]
    return ca.vertcat(*[ca.horzcat(*row) for row in rows])


# --- floating: position, quaternion xyzw ------------------------------------------------------------------------------


def _displace_floating(q: SX) -> Displacement:
    return quaternion.to_rotation(q[3:]), q[:3]


def _integrate_floating(q: SX, v: SX) -> SX:
    step = quaternion.to_rotation(q[3:]) @ quaternion.left_jacobian(v[3:]) @ v[:3]
    return ca.vertcat(q[:3] + step, _integrate_spherical(q[3:], v[3:]))


def _difference_floating(q0: SX, q1: SX) -> SX:
    turn = _difference_spherical(q0[3:], q1[3:])
    step = quaternion.to_rotation(q0[3:]).T @ (q1[:3] - q0[:3])
    return ca.vertcat(quaternion.left_jacobian_inverse(turn) @ step, turn)


def _rate_floating(q: SX) -> SX:
    return ca.diagcat(quaternion.to_rotation(q[3:]), _rate_spherical(q[3:]))


def _deflect_floating(q: SX) -> SX:
    return ca.vertcat(quaternion.to_rotation(q[3:]).T @ q[:3], quaternion.log(q[3:]))


# ----------------------------------------------------------------------------------------------------------------------

_REVOLUTE = JointKind((), (2,), (0.0,), lambda q: (rotation_z(q), zeros()), _add, _subtract, _one, _same)
_PRISMATIC = JointKind((2,), (), (0.0,), lambda q: (SX.eye(3), ca.vertcat(SX(2, 1), q)), _add, _subtract, _one, _same)
_PLANAR = JointKind(
    (0, 1),
    (2,),
    (0.0, 0.0, 0.0),
    _displace_planar,
    _integrate_planar,
    _difference_planar,
    _rate_planar,
    _deflect_planar,
)
_SPHERICAL = JointKind(
    (),
    (0, 1, 2),
    (0.0, 0.0, 0.0, 1.0),
    _displace_spherical,
    _integrate_spherical,
    _difference_spherical,
    _rate_spherical,
    quaternion.log,
)
_FLOATING = JointKind(
    (0, 1, 2),
    (0, 1, 2),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    _displace_floating,
    _integrate_floating,
    _difference_floating,
    _rate_floating,
    _deflect_floating,
)

JOINTS: dict[str, JointKind] = {
    "revolute": _REVOLUTE,
    "continuous": _REVOLUTE,
    "prismatic": _PRISMATIC,
    "planar": _PLANAR,
    "spherical": _SPHERICAL,
    "floating": _FLOATING,
}
"""Kinds of joints that move, by name; fixed joints are folded away before a joint is looked up here."""
