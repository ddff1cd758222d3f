"""Errors in variables: base parameters and their covariance where the regressor itself comes from noisy positions.

Noise n in the positions reaches the torques' errors through the smoothed motion (q, v, a) = S n,

    e = F (n_tau - (dtau/dq S_q + dtau/dv S_v + dtau/da S_a) n)

so that errors of neighbouring rows and of several joints go together, which least squares does not know. To first order the error
of the estimate is H^-1 sum (F Y)^T Sigma^-1 e, linear in all noise: its covariance follows in closed form. To second order the
noise of Y and that of e go together, which biases the estimate, and so does smoothing, which takes a little off the motion. Both
are measured on the motion found: it is smoothed once more, with noise drawn anew in pairs +-n, whose first-order parts cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from costate.core.arrays import Array
from costate.identify import solve
from costate.identify.base import Base
from costate.identify.derivatives import differentiate, window_weights
from costate.identify.filter import Filter
from costate.identify.log import Log
from costate.identify.noise.correlated import ORDER, Scatter, lag_sums, scatter
from costate.identify.regressor import BLOCK, Regressor

PAIRS = 4
"""Number of pairs of draws for the bias, and of draws for the errors of torques."""
_STEP = 1e-5
"""Step of finite differences, relative to the size of q or v."""


@dataclass(frozen=True, eq=False)
class Corrected:
    """Base parameters without the bias of noisy positions, and their covariance."""

    beta: Array
    scatter: Scatter
    bias: Array
    """Bias that was taken off, shape (rank,)."""
    noise: Array
    """Noise of the positions [rad or m], shape (nv,)."""


def correct(
    regressor: Regressor, base: Base, linear: solve.Linear, log: Log, measured: Array, halves: Array, filtered: Filter
) -> Corrected:
    """Return corrected base parameters.

    log: with smoothed positions and their derivatives; measured: positions before that (N, nv); halves: half widths of their
    windows (nv,); filtered: rows that the fit used.
    """
    assert log.t is not None and log.v is not None and log.a is not None
    pi = np.zeros(regressor.size)
    pi[base.independent] = linear.beta
    S = [_smoothing(log.t, int(half)) for half in halves]
    noise = np.array([_noise(measured[:, j] - log.q[:, j], S[j][0]) for j in range(len(halves))])
    found = _scatter(regressor, base, linear, log, pi, filtered, S, noise)
    bias = _bias(regressor, base, linear, log, pi, halves, filtered, noise)
    return Corrected(linear.beta - bias, found, bias, noise)


def _smoothing(t: Array, half: int) -> list[sparse.csr_matrix]:
    """Return the matrices (N, N) that make positions, velocities and accelerations of positions."""
    index, _, weights = window_weights(t, half, np.arange(len(t)))
    rows = np.repeat(np.arange(len(t)), index.shape[1])
    return [sparse.csr_matrix((weights[:, d].ravel(), (rows, index.ravel())), (len(t), len(t))) for d in range(3)]


def _noise(residual: Array, S: sparse.csr_matrix) -> float:
    """Return the standard deviation of noise of which smoothing has left a residual."""
    return float(np.sqrt((residual**2).sum() / max(len(residual) - S.diagonal().sum(), 1.0)))


def _jacobians(regressor: Regressor, log: Log, pi: Array) -> list[Array]:
    """Return the derivatives of torques by q, v and a, (N, nv, nv) each, by central differences (exact for a)."""
    assert log.v is not None and log.a is not None
    found = []
    for d, x in enumerate((log.q, log.v, log.a)):
        step = _STEP * max(float(np.abs(x).max()), 1e-3) if d < 2 else 1.0
        columns = []
        for j in range(x.shape[1]):
            sides = []
            for sign in (1, -1):
                moved = [log.q, log.v, log.a]
                moved[d] = x + sign * step * (np.arange(x.shape[1]) == j)
                sides.append(regressor.torques(moved[0], moved[1], moved[2], pi))
            columns.append((sides[0] - sides[1]) / (2 * step))
        found.append(np.stack(columns, -1))
    return found


def _scatter(
    regressor: Regressor,
    base: Base,
    linear: solve.Linear,
    log: Log,
    pi: Array,
    filtered: Filter,
    S: list[list[sparse.csr_matrix]],
    noise: Array,
) -> Scatter:
    """Return how far the estimate scatters: by noise of positions, in closed form, and by that of torques, from residuals."""
    J = _jacobians(regressor, log, pi)
    Y, known = _regressor_rows(regressor, log, base)
    n, nv, r = Y.shape
    F = filtered.matrix(n)
    U = (F.T @ (F @ Y.reshape(n, -1))).reshape(Y.shape) / linear.sigma[:, None] ** 2
    draws = noise * np.random.default_rng(1).normal(size=(PAIRS, n, nv))
    through = np.zeros_like(draws)  # errors of torques that come from positions
    score = np.zeros((r, r))
    for j in range(nv):
        D = np.zeros((n, r))
        for d in range(3):
            D -= S[j][d].T @ np.einsum("nir,ni->nr", U, J[d][:, :, j])
            through += J[d][:, :, j] * (S[j][d] @ draws[..., j].T).T[..., None]
        score += noise[j] ** 2 * (D.T @ D)
    foreign = sum(lag_sums(x[..., None], x[..., None], ORDER) for x in through) / (PAIRS * n)
    return scatter([(Y, U, log.tau - known - Y @ linear.beta)], other=score, foreign=foreign)


def _regressor_rows(regressor: Regressor, log: Log, base: Base) -> tuple[Array, Array]:
    assert log.v is not None and log.a is not None
    Y, known = [], []
    for k in range(0, len(log), BLOCK):
        part = slice(k, k + BLOCK)
        rows = regressor.rows(log.q[part], log.v[part], log.a[part])
        Y.append(rows[0][..., base.independent])
        known.append(rows[1])
    return np.concatenate(Y), np.concatenate(known)


def _bias(
    regressor: Regressor,
    base: Base,
    linear: solve.Linear,
    log: Log,
    pi: Array,
    halves: Array,
    filtered: Filter,
    noise: Array,
) -> Array:
    """Return the mean error of the estimate over draws of the positions' noise, shape (rank,)."""
    assert log.t is not None and log.v is not None and log.a is not None
    tau = regressor.torques(log.q, log.v, log.a, pi)
    rng = np.random.default_rng(0)
    total = np.zeros(base.rank)
    for _ in range(PAIRS):
        n = noise * rng.normal(size=log.q.shape)
        for sign in (1, -1):
            q, v, a = differentiate(log.t, log.q + sign * n, halves=halves)
            A, b = solve.Reduced.of(solve.Equations(regressor, q, v, a, tau, filtered)).weighted(linear.sigma)
            total += np.linalg.lstsq(A[:, base.independent], b, rcond=None)[0] - linear.beta
    return total / (2 * PAIRS)
