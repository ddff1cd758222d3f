"""Unit quaternions in the order x, y, z, w, and the exponential map of rotations.

All functions have finite derivatives everywhere, also at the identity and at half turns: near a point where a quotient
tends to 0/0 it is replaced by its Taylor series, and the argument of the quotient that is not used by a harmless one.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX

from costate.physics.algebra.spatial import cross, skew

# Squared angle [rad^2] below which Taylor series are used; their first missing term is of relative size 1e-17.
SMALL = 1e-5


def product(a: SX, b: SX) -> SX:
    """Return the quaternion product, which is the rotation b followed by a, shape (4,)."""
    u, v = a[:3], b[:3]
    return ca.vertcat(a[3] * v + b[3] * u + cross(u, v), a[3] * b[3] - ca.dot(u, v))


def conjugate(a: SX) -> SX:
    """Return the inverse rotation, shape (4,)."""
    return ca.vertcat(-a[0], -a[1], -a[2], a[3])


def normalized(a: SX) -> SX:
    return a / ca.sqrt(ca.sumsqr(a))


def to_rotation(a: SX) -> SX:
    """Return the rotation matrix of a quaternion of any length, shape (3, 3).

    The result is a rotation whatever the length, so identities such as ID(FD(tau)) = tau, and derivatives in the four
    components, also hold off the unit sphere. This costs nine operations.
    """
    x, y, z, w = a[0], a[1], a[2], a[3]
    twice = 2 / ca.sumsqr(a)
    x2, y2, z2 = x * twice, y * twice, z * twice
    xx, yy, zz, xy, xz, yz = x * x2, y * y2, z * z2, x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return ca.vertcat(
        ca.horzcat(1 - (yy + zz), xy - wz, xz + wy),
        ca.horzcat(xy + wz, 1 - (xx + zz), yz - wx),
        ca.horzcat(xz - wy, yz + wx, 1 - (xx + yy)),
    )


def from_rotation(R: SX) -> SX:
    """Return the unit quaternion of a rotation matrix, with its largest component positive, shape (4,).

    Four times the outer product of the quaternion with itself is linear in R; the column of its largest diagonal entry
    (at least 1) is chosen first and normalised afterwards, so no square root comes near zero (Shepperd, 1978).
    """
    x, y, z = R[0, 0], R[1, 1], R[2, 2]
    a, b, c = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    d, e, f = R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1]
    of_x = ca.vertcat(1 + x - y - z, d, e, a)
    of_y = ca.vertcat(d, 1 - x + y - z, f, b)
    of_z = ca.vertcat(e, f, 1 - x - y + z, c)
    of_w = ca.vertcat(a, b, c, 1 + x + y + z)
    of_xy = ca.if_else(x >= y, of_x, of_y)
    of_vector = ca.if_else(z >= ca.fmax(x, y), of_z, of_xy)
    # The real part is at least the largest other one when trace(R) >= max(R_ii).
    column = ca.if_else(x + y + z >= ca.fmax(ca.fmax(x, y), z), of_w, of_vector)
    return normalized(column)


def exp(rotation_vector: SX) -> SX:
    """Return the unit quaternion of a rotation vector (axis times angle) [rad], shape (4,)."""
    n2 = ca.sumsqr(rotation_vector)
    safe = ca.if_else(n2 < SMALL, 1, n2)
    half = ca.sqrt(safe) / 2
    factor = ca.if_else(n2 < SMALL, 0.5 - n2 / 48 + n2 * n2 / 3840, ca.sin(half) / (2 * half))
    real = ca.if_else(n2 < SMALL, 1 - n2 / 8 + n2 * n2 / 384 - n2**3 / 46080, ca.cos(half))
    return ca.vertcat(factor * rotation_vector, real)


def log(a: SX) -> SX:
    """Return the rotation vector of a quaternion of any length, at most pi long [rad], shape (3,)."""
    sign = ca.if_else(a[3] < 0, -1, 1)
    u, w = sign * a[:3], sign * a[3]
    n2 = ca.sumsqr(u)
    is_small = n2 < SMALL * w * w
    n = ca.sqrt(ca.if_else(is_small, 1, n2))
    w_safe = ca.if_else(is_small, w, 1)
    t2 = n2 / (w_safe * w_safe)
    series = 2 * (1 - t2 / 3 + t2 * t2 / 5 - t2**3 / 7) / w_safe  # 2 atan(n / w) / n
    return ca.if_else(is_small, series, 2 * ca.atan2(n, w) / n) * u


def left_jacobian(rotation_vector: SX) -> SX:
    """Return the V of the exponential of rigid motions, shape (3, 3): exp(v, w) moves the origin by V(w) v.

    V = 1 + (1 - cos t) / t^2 [w]x + (t - sin t) / t^3 [w]x^2 with t = |w|.
    """
    n2 = ca.sumsqr(rotation_vector)
    is_small = n2 < SMALL
    safe = ca.if_else(is_small, 1, n2)
    n = ca.sqrt(safe)
    first = ca.if_else(is_small, 0.5 - n2 / 24 + n2 * n2 / 720, 2 * ca.sin(n / 2) ** 2 / safe)
    second = ca.if_else(is_small, 1 / 6 - n2 / 120 + n2 * n2 / 5040, (n - ca.sin(n)) / (safe * n))
    W = skew(rotation_vector)
    return SX.eye(3) + first * W + second * (W @ W)


def left_jacobian_inverse(rotation_vector: SX) -> SX:
    """Return V^-1 = 1 - [w]x / 2 + (1 - (t/2) cot(t/2)) / t^2 [w]x^2 with t = |w| < 2 pi, shape (3, 3)."""
    n2 = ca.sumsqr(rotation_vector)
    is_small = n2 < SMALL
    safe = ca.if_else(is_small, 1, n2)
    half = ca.sqrt(safe) / 2
    series = 1 / 12 + n2 / 720 + n2 * n2 / 30240
    second = ca.if_else(is_small, series, (1 - half * ca.cos(half) / ca.sin(half)) / safe)
    W = skew(rotation_vector)
    return SX.eye(3) - W / 2 + second * (W @ W)
