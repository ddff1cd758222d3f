"""Three-dimensional algebra on sparse CasADi expressions.

Spatial vectors are pairs (linear, angular) and transforms are pairs (rotation, translation), which are cheaper than
6 x 6 matrices. Nothing is computed with structural zeros, so numbers that are zero in a robot's file cost nothing.
"""

from __future__ import annotations

import casadi as ca
from casadi import SX


def zeros() -> SX:
    """Return a vector of structural zeros, shape (3,)."""
    return SX(3, 1)


def cross(a: SX, b: SX) -> SX:
    """Return a x b, shape (3,)."""
    return ca.cross(a, b)


def skew(a: SX) -> SX:
    """Return the [a]x with [a]x b = a x b, shape (3, 3)."""
    return ca.sparsify(ca.skew(a))


def centrifugal(omega: SX) -> SX:
    """Return [omega]x^2, shape (3, 3)."""
    W = skew(omega)
    return symmetric(W @ W)


def axial(K: SX) -> SX:
    """Return the vector of K - K^T, shape (3,): for K = sum of s r^T it is the sum of r x s."""
    return ca.vertcat(K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1])


def symmetric(K: SX) -> SX:
    """Return the symmetric matrix with the upper triangle of K, so that the lower one need not be computed."""
    return ca.triu2symm(ca.triu(K))


def rotation_z(angle: SX) -> SX:
    """Return the rotation about z by an angle [rad], shape (3, 3)."""
    c, s, o = ca.cos(angle), ca.sin(angle), SX(1, 1)
    return ca.vertcat(ca.horzcat(c, -s, o), ca.horzcat(s, c, o), ca.horzcat(o, o, SX(1)))


def basis(axis: SX) -> SX:
    """Return a rotation whose third column is the given unit axis; its first two columns span the plane normal to it.

    For axis_z >= 0 it is the shortest rotation of z onto the axis, otherwise a half turn about x followed by the
    shortest rotation of -z (Duff et al., "Building an orthonormal basis, revisited", 2017). No denominator is below 1,
    and a coordinate axis gives exact zeros and ones.
    """
    x, y, z = axis[0], axis[1], axis[2]
    sign = ca.if_else(z >= 0, 1, -1)
    a = -1 / (sign + z)
    b = x * y * a
    first = ca.vertcat(1 + sign * x * x * a, sign * b, -sign * x)
    second = ca.vertcat(b, sign + y * y * a, -y)
    return ca.sparsify(ca.horzcat(first, second, ca.vertcat(x, y, z)))


def coordinate_axis(R: SX) -> int | None:
    """Return k if R is, by its structure, a rotation about coordinate axis k, and None otherwise."""
    if R.nnz() != 5:
        return None
    pattern = R.sparsity()
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        if R[k, k].is_one() and not any(pattern.has_nz(*at) for at in ((k, i), (k, j), (i, k), (j, k))):
            return k
    return None


def rotate_matrix(R: SX, K: SX, is_symmetric: bool = False) -> SX:
    """Return R K R^T, shape (3, 3). For a rotation about a coordinate axis a 2 x 2 block takes 12 operations, not 24."""
    if R.is_eye() or K.nnz() == 0:
        return K
    k = coordinate_axis(R)
    rotated = R @ K @ R.T if k is None else _rotate_about(k, R, K)
    return symmetric(rotated) if is_symmetric else rotated


def _rotate_about(k: int, R: SX, K: SX) -> SX:
    """Return R K R^T for a rotation about axis k, as K plus a change: sin^2 and sin cos times two numbers."""
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = R[i, i], R[j, i]
    ss, cs = s * s, c * s
    u, w = K[i, i] - K[j, j], K[i, j] + K[j, i]
    delta, epsilon = ss * u + cs * w, cs * u - ss * w
    entries = {
        (i, i): K[i, i] - delta,
        (j, j): K[j, j] + delta,
        (i, j): K[i, j] + epsilon,
        (j, i): K[j, i] + epsilon,
        (i, k): c * K[i, k] - s * K[j, k],
        (j, k): s * K[i, k] + c * K[j, k],
        (k, i): c * K[k, i] - s * K[k, j],
        (k, j): s * K[k, i] + c * K[k, j],
        (k, k): K[k, k],
    }
    return ca.sparsify(ca.vertcat(*[ca.horzcat(*[entries[a, b] for b in range(3)]) for a in range(3)]))
