"""The residual of the true problem of hard contact, in NumPy alone: from masses, Jacobian, velocities and impulses.

Impulses alone say what velocities follow: v = M^-1 (p + J' l). At u = J v - t, Signorini's law, Coulomb's and that of the largest
dissipation are one equation of each contact (De Saxce and Feng, 1998): with K the cone |l_t| <= mu l_n and any r > 0,

    l = P_K(l - r w),    w = u + mu |u_t| n

so that |l - P_K(l - r w)| / r is a speed: the one by which a contact misses its laws. r is the inverse of the contact's own
mobility. It is 0 at solutions of the true problem only: a convex relaxation, which lets what slides fly, is told apart.
"""

from __future__ import annotations

import numpy as np

from benchmarks.convergence.problems import Problems


def velocities(given: Problems, impulses: np.ndarray | None = None) -> np.ndarray:
    """Return the velocities that impulses cause, (b, nv)."""
    found = given.impulses if impulses is None else impulses
    p = given.p + np.einsum("bij,bi->bj", given.J, found)
    return np.linalg.solve(given.M, p[..., None])[..., 0]


def misses(given: Problems, impulses: np.ndarray | None = None) -> np.ndarray:
    """Return the speed by which each block misses its laws [m/s or rad/s], (b, blocks). impulses: those to judge; None: those of
    the solution that was kept."""
    found = given.impulses if impulses is None else impulses
    u = np.einsum("bij,bj->bi", given.J, velocities(given, found)) - given.t
    mobility = np.einsum("bij,bji->bi", given.J, np.linalg.solve(given.M, given.J.transpose(0, 2, 1)))
    left = np.zeros((len(given), len(given.kinds)))
    for k, (kind, rows) in enumerate(zip(given.kinds, given.rows, strict=True)):
        own = list(rows)
        ease = mobility[:, own].mean(1)
        # A row that moves nothing has no speed to miss.
        moves = ease > 0
        r = 1 / np.where(moves, ease, 1)
        missed = LAWS[kind](found[:, own], u[:, own], given.bounds[:, k], r)
        left[:, k] = np.where(moves, missed / r, 0)
    return left


def residual(given: Problems, impulses: np.ndarray | None = None) -> np.ndarray:
    """Return the largest speed by which any block misses its laws [m/s or rad/s], (b,)."""
    return misses(given, impulses).max(1, initial=0)


def _contact(l: np.ndarray, u: np.ndarray, mu: np.ndarray, r: np.ndarray) -> np.ndarray:
    w = u.copy()
    w[:, 0] += mu * np.linalg.norm(u[:, 1:], axis=1)
    return np.linalg.norm(l - onto_cone(l - r[:, None] * w, mu), axis=1)


def _push(l: np.ndarray, u: np.ndarray, bound: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.abs(l - np.maximum(l - r[:, None] * u, 0))[:, 0]


def _rub(l: np.ndarray, u: np.ndarray, bound: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.abs(l[:, 0] - np.clip(l[:, 0] - r * u[:, 0], -bound, bound))


def _hold(l: np.ndarray, u: np.ndarray, bound: np.ndarray, r: np.ndarray) -> np.ndarray:
    return r * np.abs(u[:, 0])


LAWS = {"contact": _contact, "push": _push, "rub": _rub, "hold": _hold}
"""Kind of a block -> by how much its impulses miss their law [N s or N m s]."""


def onto_cone(y: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Return the points of the cones |y_t| <= mu y_n that are nearest to y, (b, 3), the normal first."""
    size = np.linalg.norm(y[:, 1:], axis=1)
    inside, polar = size <= mu * y[:, 0], mu * size <= -y[:, 0]
    along = (y[:, 0] + mu * size) / (1 + mu**2)
    direction = y[:, 1:] / np.where(size > 0, size, 1)[:, None]
    mantle = along[:, None] * np.column_stack([np.ones(len(y)), mu[:, None] * direction])
    return np.where(inside[:, None], y, np.where(polar[:, None], 0.0, mantle))
