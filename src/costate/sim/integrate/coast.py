"""Coasting: how a single body turns and flies through a substep in which no force acts on it.

A body that turns freely keeps its energy and, seen from the world, its angular momentum. So does this substep, whatever its length,
where I w' = exp(-h m) I w with the mean velocity m = (w + w') / 2, and the body turns by exp(h m): momentum stays where it is in
the world, and the rotation is about w + w', which does no work. For a steady spin it is exact.

With c = 2 tan(|h m| / 2) / |h m| the rotation is a Cayley transform, and the equation for m has no trigonometric function:

    F(m) = 2 I (m - w) + c h m x I m = 0

Angular velocities at the end are in the axes of the start, as linear ones are (advance.py).
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from casadi import SX

from costate.physics.algebra import quaternion
from costate.physics.algebra.inertia import Inertia
from costate.physics.algebra.spatial import cross, skew

CORRECTIONS = 2
"""Corrections of the mean velocity by Newton's method, all with the slope of the first. At 0.6 rad per step they leave 1e-8 of the
energy."""
STEEP = 1.0
"""Bound of (|h m| / 2)^2 in the equation: beyond 2 rad per step momentum is kept, energy is not."""
GAIN = 1e-6
"""Part of its energy that a body may gain in a substep; what is beyond is taken away, where the equation was not solved."""
AT_REST = 1e-20
"""Square of a speed of turning [rad^2/s^2] below which a body is at rest."""


def coast(inertia: Inertia, v: SX, h: SX | float) -> tuple[SX, SX]:
    """Return the velocity of a free body after a time h [s], and the one that positions move with.

    inertia: About the origin. Velocities: of the origin, then angular, in the axes of the start, (6,).
    """
    com = ca.sparsify(inertia.first / inertia.mass)
    about_com = inertia.rotational() - inertia.mass * (ca.dot(com, com) * SX.eye(3) - com @ com.T)
    mean, turn, after = free_turn(ca.sparsify(about_com), v[3:], h)
    if not com.nnz():
        return ca.vertcat(v[:3], after), ca.vertcat(v[:3], mean)
    # The centre of mass goes straight on, and the origin turns about it.
    flight, end = v[:3] + cross(v[3:], com), turn @ com
    return ca.vertcat(flight - cross(after, end), after), ca.vertcat(flight - (end - com) / h, mean)


def about_pivot(inertia: Inertia, omega: SX, h: SX | float) -> tuple[SX, SX]:
    """Return the angular velocity of a body that turns about its origin after a time h [s], and the mean one, (3,) each."""
    mean, _, after = free_turn(ca.sparsify(inertia.rotational()), omega, h)
    return after, mean


def free_turn(I: SX, omega: SX, h: SX | float) -> tuple[SX, SX, SX]:
    """Return mean angular velocity (3,), rotation (3, 3) and angular velocity at the end (3,) of a body that turns freely.

    I: Inertia about the point it turns about, (3, 3); h: time [s]. All in the axes of the start.
    """
    if _is_same_all_round(I):
        return omega, quaternion.to_rotation(quaternion.exp(h * omega)), omega
    I = I / ca.trace(I)  # small bodies have inertias whose determinants float32 cannot hold
    momentum, inverse = I @ omega, _inverse(I)
    mean = omega - h / 2 * inverse @ cross(omega, momentum)
    back: SX | None = None
    for _ in range(CORRECTIONS):
        own, stretched = I @ mean, h * _tangent(h * mean)
        left = 2 * (own - momentum) + stretched * cross(mean, own)
        back = _inverse(2 * I + stretched * (skew(mean) @ I - skew(own))) if back is None else back
        mean = mean - back @ left
    turn = quaternion.to_rotation(quaternion.exp(h * mean))
    momentum_after = turn.T @ momentum
    after = inverse @ momentum_after
    energy, energy_after = ca.dot(omega, momentum), ca.dot(after, momentum_after)
    part = ca.sqrt(ca.fmin(1, ((1 + GAIN) * energy + AT_REST) / (energy_after + AT_REST)))
    return mean, turn, turn @ (part * after)


def _is_same_all_round(I: SX) -> bool:
    """Return whether an inertia is known to be that of a ball or a cube, which turns steadily."""
    if not I.is_constant():
        return False
    numbers = np.array(ca.DM(I))
    mean = np.trace(numbers) / 3
    return bool(np.abs(numbers - mean * np.eye(3)).max() <= 1e-12 * mean)


def _tangent(angle: SX) -> SX:
    """Return tan(x / 2) / (x / 2) for an angle x = |angle| that is not too large, by Lambert's continued fraction."""
    z = ca.fmin(ca.sumsqr(angle) / 4, STEEP)
    return (945 - 105 * z + z * z) / (945 - 420 * z + 15 * z * z)


def _inverse(A: SX) -> SX:
    """Return the inverse of a matrix, (3, 3); zeros of a diagonal one cost nothing."""
    if A.sparsity().is_diag():
        return ca.diag(1 / ca.diag(A))
    x, y, z = ca.horzsplit(ca.densify(A))
    first = cross(y, z)
    return ca.horzcat(first, cross(z, x), cross(x, y)).T * (1 / ca.dot(x, first))
