"""Fitting parameters to torques by weighted linear least squares.

The data are reduced to one triangular factor per joint, so every iteration after that costs the same however long the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from costate.core.arrays import Array
from costate.identify.filter import Filter
from costate.identify.noise.correlated import Scatter, Stretch, scatter
from costate.identify.regressor import BLOCK, Regressor

NOISE_FLOOR = 1e-10
"""Least noise of a torque, relative to its typical size."""
_REWEIGHTINGS = 10


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations of a log, block by block: the filter of a block, and [Y, own, shared, torque] of its span of rows."""

    regressor: Regressor
    q: Array
    v: Array
    a: Array
    tau: Array
    filtered: Filter
    """Rows that count, and the filter that all columns go through."""
    own: Array | None = None
    """Further columns of each joint, (N, nv, k), whose nv k coefficients follow the parameters, joint by joint."""
    shared: Array | None = None
    """The same, with k coefficients for all joints together."""

    @property
    def size(self) -> int:
        """Number of coefficients."""
        own = 0 if self.own is None else self.own.shape[1] * self.own.shape[2]
        return self.regressor.size + own + (0 if self.shared is None else self.shared.shape[2])

    def __iter__(self) -> Iterator[tuple[Filter, Array]]:
        block = BLOCK if not self.filtered.half else max(1, 2 * BLOCK // self.filtered.half)
        for start in range(0, len(self.filtered), block):
            part = self.filtered.take(slice(start, start + block))
            rows = part.span()
            Y, known = self.regressor.rows(self.q[rows], self.v[rows], self.a[rows])
            more = [] if self.own is None else [side_by_side(self.own[rows])]
            more += [] if self.shared is None else [self.shared[rows]]
            yield part, np.concatenate([Y, *more, (self.tau[rows] - known)[..., None]], 2)

    def scatter(self, independent: Array, beta: Array, sigma: Array) -> Scatter:
        """Return how far coefficients beta of some columns scatter, found with the noise sigma of each joint as weights."""
        return scatter(_Stretches(self, independent, beta, sigma))


@dataclass(frozen=True, eq=False)
class _Stretches:
    """Blocks of a log as stretches of rows with correlated errors."""

    data: Equations
    independent: Array
    beta: Array
    sigma: Array

    def __iter__(self) -> Iterator[Stretch]:
        for part, columns in self.data:
            X, F = columns[..., self.independent], part.matrix(len(columns), part.span().start)
            U = (F.T @ (F @ X.reshape(len(X), -1))).reshape(X.shape) / self.sigma[:, None] ** 2
            yield X, U, columns[..., -1] - X @ self.beta


@dataclass(frozen=True, eq=False)
class Reduced:
    """The data reduced to triangles: |W pi - y|^2 = |R pi - z|^2 + rest over n samples, per joint."""

    R: list[Array]
    z: list[Array]
    rest: Array
    n: int

    @staticmethod
    def of(data: Equations) -> Reduced:
        """Reduce the equations of a log, block by block."""
        size, factors = data.size, [np.zeros((0, data.size + 1)) for _ in range(data.tau.shape[1])]
        for part, columns in data:
            both = part.apply(columns, part.span().start)
            factors = [triangle(np.concatenate([f, both[:, j]])) for j, f in enumerate(factors)]
        R = [f[:size, :size] for f in factors]
        z = [f[:size, size] for f in factors]
        rest = np.array([float((f[size:, size] ** 2).sum()) for f in factors])
        return Reduced(R, z, rest, len(data.filtered))

    @staticmethod
    def together(parts: Sequence[Reduced]) -> Reduced:
        """Return several logs as one."""
        factors = []
        for each in zip(*(zip(p.R, p.z, strict=True) for p in parts), strict=True):
            factors.append(triangle(np.concatenate([np.column_stack([R, z]) for R, z in each])))
        size = parts[0].R[0].shape[1]
        rest = np.array([float((f[size:, size] ** 2).sum()) for f in factors]) + sum(p.rest for p in parts)
        return Reduced(
            [f[:size, :size] for f in factors], [f[:size, size] for f in factors], rest, sum(p.n for p in parts)
        )

    def misfit(self, pi: Array) -> Array:
        """Return the sum of squared errors per joint [(N m)^2], shape (nv,)."""
        return np.array([((R @ pi - z) ** 2).sum() + r for R, z, r in zip(self.R, self.z, self.rest, strict=True)])

    def rmse(self, pi: Array) -> Array:
        """Return the root mean square error per joint [N m or N], shape (nv,)."""
        return np.sqrt(self.misfit(pi) / self.n)

    def weighted(self, sigma: Array) -> tuple[Array, Array]:
        """Return A (n, n), b (n,) with errors of unit variance; what |A pi - b|^2 leaves out does not depend on pi."""
        A = np.concatenate([R / s for R, s in zip(self.R, sigma, strict=True)])
        b = np.concatenate([z / s for z, s in zip(self.z, sigma, strict=True)])
        factor = triangle(np.concatenate([A, b[:, None]], 1))
        return factor[: A.shape[1], :-1], factor[: A.shape[1], -1]


def side_by_side(own: Array) -> Array:
    """Return columns of each joint (n, nv, k) as columns of all torques, (n, nv, nv k)."""
    n, nv, k = own.shape
    out = np.zeros((n, nv, nv, k))
    out[:, np.arange(nv), np.arange(nv)] = own
    return out.reshape(n, nv, nv * k)


def triangle(W: Array) -> Array:
    """Return R with |W x| = |R x| for all x."""
    return np.asarray(np.linalg.qr(W, mode="r"))


@dataclass(frozen=True, eq=False)
class Linear:
    """The solution of weighted least squares for the base parameters."""

    beta: Array
    """Base parameters, shape (r,)."""
    covariance: Array
    """Covariance of beta, shape (r, r)."""
    sigma: Array
    """Standard deviation of the torques' noise per joint, from the residuals [N m or N], shape (nv,)."""


def solve_linear(data: Reduced, independent: Array, scale: Array) -> Linear:
    """Fit the base parameters by iteratively reweighted least squares: weights follow from the residuals, joint by joint.

    scale: typical torque per joint; noise is never taken as less than NOISE_FLOOR of it.
    """
    sigma = scale.copy()
    beta = np.zeros(len(independent))
    for _ in range(_REWEIGHTINGS):
        A, b = data.weighted(sigma)
        beta = np.linalg.lstsq(A[:, independent], b, rcond=None)[0]
        pi = np.zeros(A.shape[1])
        pi[independent] = beta
        freedom = np.maximum(data.n - _share(data, independent, sigma), 1.0)
        new = np.maximum(np.sqrt(data.misfit(pi) / freedom), NOISE_FLOOR * scale)
        if np.allclose(new, sigma, rtol=1e-4, atol=0):
            break
        sigma = new
    A, _ = data.weighted(sigma)
    inverse = np.linalg.pinv(A[:, independent])
    return Linear(beta, inverse @ inverse.T, sigma)


def _share(data: Reduced, independent: Array, sigma: Array) -> Array:
    """Return the number of parameters that each joint's samples determine: the trace of its block of the hat matrix, (nv,)."""
    Q = np.linalg.qr(np.concatenate([R[:, independent] / s for R, s in zip(data.R, sigma, strict=True)]))[0]
    edges = np.cumsum([0] + [len(R) for R in data.R])
    return np.array([float((Q[a:b] ** 2).sum()) for a, b in pairwise(edges)])


def nearest(beta: Array, prior: Array, independent: Array, dependent: Array, K: Array) -> Array:
    """Return full parameters with the given base parameters, as near to the prior as possible (relative to its sizes)."""
    B = np.zeros((len(beta), len(prior)))
    B[np.arange(len(beta)), independent] = 1.0
    B[:, dependent] = K
    scale = np.maximum(np.abs(prior), 1e-3 * np.abs(prior).max(initial=1e-12))
    return prior + scale * (np.linalg.pinv(B * scale) @ (beta - B @ prior))


def blocks(n: int, held_out: float, parts: int = 10) -> tuple[Array, Array]:
    """Return indices to train on and to hold out: stretches spread over the log, so that neither sees the other's noise."""
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out must be in [0, 1), but is {held_out}")
    part = np.minimum(np.arange(n) * parts // max(n, 1), parts - 1)
    count = round(held_out * parts)
    chosen: Sequence[int] = [int((k + 0.5) * parts / count) for k in range(count)] if count else []
    mask = np.isin(part, chosen)
    return np.flatnonzero(~mask), np.flatnonzero(mask)
