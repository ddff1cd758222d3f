"""Small matrices of symbols: what laws of materials are made of. None of it has a singular derivative where stretches are equal."""

from __future__ import annotations

import casadi as ca

ROTATION_STEPS = 7
"""Newton steps of a rotation in 3D: exact to rounding for stretches between 1/4 and 4."""
SERIES = 6
"""Terms of the series of logarithms: an error below 1e-12 for strains up to 0.1, and 1e-6 up to 0.35."""


def matrix(column: ca.SX, dim: int) -> ca.SX:
    """Return a matrix (dim, dim) from its numbers, row by row."""
    return ca.reshape(column, dim, dim).T


def column(m: ca.SX) -> ca.SX:
    """Return the numbers of a matrix, row by row."""
    return ca.vec(m.T)


def pairs(dim: int) -> list[tuple[int, int]]:
    """Return the entries of a symmetric matrix that are kept: its upper triangle, row by row."""
    return [(i, j) for i in range(dim) for j in range(i, dim)]


def symmetric(numbers: ca.SX, dim: int) -> ca.SX:
    """Return a symmetric matrix from its upper triangle."""
    m = ca.SX.zeros(dim, dim)
    for k, (i, j) in enumerate(pairs(dim)):
        m[i, j] = m[j, i] = numbers[k]
    return m


def triangle(m: ca.SX) -> ca.SX:
    """Return the upper triangle of a symmetric matrix."""
    return ca.vertcat(*(m[i, j] for i, j in pairs(m.shape[0])))


def cofactors(m: ca.SX) -> ca.SX:
    """Return det(m) times the transposed inverse of a matrix (2, 2) or (3, 3)."""
    if m.shape[0] == 2:
        return ca.blockcat([[m[1, 1], -m[1, 0]], [-m[0, 1], m[0, 0]]])
    rows = [m[i, :].T for i in range(3)]
    return ca.vertcat(*(ca.cross(rows[(i + 1) % 3], rows[(i + 2) % 3]).T for i in range(3)))


def det(m: ca.SX) -> ca.SX:
    """Return the determinant of a matrix (2, 2) or (3, 3)."""
    return ca.dot(m[0, :], cofactors(m)[0, :])


def rotation(F: ca.SX) -> ca.SX:
    """Return the rotation R of the polar decomposition F = R S: by a formula in 2D, by Newton's method in 3D."""
    if F.shape[0] == 2:
        a, b = F[0, 0] + F[1, 1], F[1, 0] - F[0, 1]
        size = ca.sqrt(a * a + b * b)
        return ca.blockcat([[a / size, -b / size], [b / size, a / size]])
    R = F
    for _ in range(ROTATION_STEPS):
        C = cofactors(R)
        R = 0.5 * (R + C / ca.dot(R[0, :], C[0, :]))
    return R


def deviator(m: ca.SX) -> ca.SX:
    """Return a symmetric matrix without its trace."""
    return m - ca.trace(m) / m.shape[0] * ca.SX.eye(m.shape[0])


def log_strain(b: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the logarithmic strain 1/2 log(b) of a symmetric matrix, as its deviator and its trace.

    The volume is split off, log(b) = 2 artanh((b - 1) / (b + 1)), and the series of artanh is summed: so shear strains should be
    small (see `SERIES`), changes of volume need not.
    """
    dim = b.shape[0]
    I = ca.SX.eye(dim)
    trace = 0.5 * ca.log(det(b))
    even = b * ca.exp(-2 * trace / dim)
    plus = even + I
    inverse = cofactors(plus) / det(plus)
    z = ca.mtimes(even - I, inverse)
    z2 = ca.mtimes(z, z)
    total = I / (2 * SERIES - 1)
    for k in range(SERIES - 1, 0, -1):
        total = ca.mtimes(z2, total) + I / (2 * k - 1)
    return deviator(ca.mtimes(z, total)), trace


def exponential(m: ca.SX) -> ca.SX:
    """Return exp(m) of a small symmetric matrix: the series of exp(m / 2), squared."""
    half = m / 2
    total = ca.SX.eye(m.shape[0])
    for k in range(9, 0, -1):
        total = ca.SX.eye(m.shape[0]) + ca.mtimes(half, total) / k
    return ca.mtimes(total, total)


def length(m: ca.SX) -> ca.SX:
    """Return the root of the sum of squares of all numbers; its derivative at 0 is 0."""
    square = ca.sumsqr(m)
    return ca.if_else(square > 0, ca.sqrt(ca.if_else(square > 0, square, 1)), 0)
