"""Fitting parameters to torques: weighted linear least squares, and Gauss-Newton over physically possible parameters.

The data are reduced to one triangular factor per joint, so every iteration after that costs the same however long the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from costate.learn.identify.regressor import BLOCK, Regressor, inertia_of
from costate.model import Inertia
from costate.robot.params import PhysicalInertia

Array = NDArray[Any]
Progress = Callable[[int, float], None]
"""Called with the iteration and the cost."""

NO_EFFECT = 1e-9
"""Derivatives this much smaller than the largest do not move a parameter."""
_REWEIGHTINGS = 10


@dataclass(frozen=True, eq=False)
class Reduced:
    """Per joint, |W pi - y|^2 = |R pi - z|^2 + rest over n samples."""

    R: list[Array]
    z: list[Array]
    rest: Array
    n: int

    @staticmethod
    def of(regressor: Regressor, q: Array, v: Array, a: Array, tau: Array) -> Reduced:
        size, nv = regressor.size, tau.shape[1]
        factors: list[Array] = [np.zeros((0, size + 1)) for _ in range(nv)]
        for start in range(0, len(q), BLOCK):
            rows = slice(start, start + BLOCK)
            Y, known = regressor.rows(q[rows], v[rows], a[rows])
            y = tau[rows] - known
            for j in range(nv):
                block = np.concatenate([Y[:, j], y[:, j : j + 1]], 1)
                factors[j] = _triangle(np.concatenate([factors[j], block]))
        R = [f[:size, :size] for f in factors]
        z = [f[:size, size] for f in factors]
        rest = np.array([float((f[size:, size] ** 2).sum()) for f in factors])
        return Reduced(R, z, rest, len(q))

    def misfit(self, pi: Array) -> Array:
        """Sum of squared errors per joint [(N m)^2], shape (nv,)."""
        return np.array([((R @ pi - z) ** 2).sum() + r for R, z, r in zip(self.R, self.z, self.rest, strict=True)])

    def rmse(self, pi: Array) -> Array:
        """Root mean square error per joint [N m or N], shape (nv,)."""
        return np.sqrt(self.misfit(pi) / self.n)

    def weighted(self, sigma: Array) -> tuple[Array, Array]:
        """A (n, n), b (n,) with errors of unit variance: what |A pi - b|^2 leaves out does not depend on pi."""
        A = np.concatenate([R / s for R, s in zip(self.R, sigma, strict=True)])
        b = np.concatenate([z / s for z, s in zip(self.z, sigma, strict=True)])
        factor = _triangle(np.concatenate([A, b[:, None]], 1))
        return factor[: A.shape[1], :-1], factor[: A.shape[1], -1]


def _triangle(W: Array) -> Array:
    """R with |W x| = |R x| for all x."""
    return np.asarray(np.linalg.qr(W, mode="r"))


@dataclass(frozen=True, eq=False)
class Linear:
    """Weighted least squares for the base parameters."""

    beta: Array
    """Shape (r,)."""
    covariance: Array
    """Of beta, shape (r, r)."""
    sigma: Array
    """Standard deviation of the torques' noise per joint, from the residuals [N m or N], shape (nv,)."""


def solve_linear(data: Reduced, independent: Array, scale: Array) -> Linear:
    """Weights are found from the residuals, joint by joint, and the fit repeated (iteratively reweighted least squares).

    scale: typical torque per joint; noise is never taken as less than 1e-12 of it.
    """
    sigma = scale.copy()
    beta = np.zeros(len(independent))
    for _ in range(_REWEIGHTINGS):
        A, b = data.weighted(sigma)
        beta = np.linalg.lstsq(A[:, independent], b, rcond=None)[0]
        pi = np.zeros(A.shape[1])
        pi[independent] = beta
        freedom = np.maximum(data.n - _share(data, independent, sigma), 1.0)
        new = np.maximum(np.sqrt(data.misfit(pi) / freedom), 1e-12 * scale)
        if np.allclose(new, sigma, rtol=1e-6, atol=0):
            break
        sigma = new
    A, _ = data.weighted(sigma)
    inverse = np.linalg.pinv(A[:, independent])
    return Linear(beta, inverse @ inverse.T, sigma)


def _share(data: Reduced, independent: Array, sigma: Array) -> Array:
    """How many parameters each joint's samples pay for: the trace of its block of the hat matrix, shape (nv,)."""
    Q = np.linalg.qr(np.concatenate([R[:, independent] / s for R, s in zip(data.R, sigma, strict=True)]))[0]
    edges = np.cumsum([0] + [len(R) for R in data.R])
    return np.array([float((Q[a:b] ** 2).sum()) for a, b in pairwise(edges)])


def nearest(beta: Array, prior: Array, independent: Array, dependent: Array, K: Array) -> Array:
    """Full parameters with the given base parameters, as near to the prior as possible (relative to its sizes)."""
    B = np.zeros((len(beta), len(prior)))
    B[np.arange(len(beta)), independent] = 1.0
    B[:, dependent] = K
    scale = np.maximum(np.abs(prior), 1e-3 * np.abs(prior).max(initial=1e-12))
    return prior + scale * (np.linalg.pinv(B * scale) @ (beta - B @ prior))


# --- physically possible parameters -------------------------------------------------------------------------------------


class Physical:
    """pi as a function of free numbers x: log-Cholesky factors per link, joint terms as they are but not negative."""

    def __init__(self, regressor: Regressor):
        self.n_links = len(regressor.links)
        self.n_joints = len(regressor.joints)

    def start(self, pi: Array, prior: Array) -> Array:
        """x of the parameters given; for links whose parameters are impossible, of the prior."""
        links = []
        for k in range(self.n_links):
            own = slice(10 * k, 10 * k + 10)
            inertia = inertia_of(pi[own])
            if not _is_possible(inertia):
                inertia = inertia_of(prior[own])
            module = PhysicalInertia((inertia.mass, inertia.com, inertia.matrix))
            assert module.raw is not None
            links.append(module.raw.detach().numpy())
        return np.concatenate([np.zeros(0), *links, np.maximum(pi[10 * self.n_links :], 0.0)])

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """pi (n,) and d pi / d x (n, n)."""
        raw = torch.as_tensor(x[: 10 * self.n_links]).reshape(-1, 10)
        pi, J = x.copy(), np.eye(len(x))
        if self.n_links:
            blocks = torch.func.vmap(torch.func.jacrev(_link_vector))(raw).numpy()
            pi[: 10 * self.n_links] = torch.func.vmap(_link_vector)(raw).numpy().ravel()
            for k, block in enumerate(blocks):
                J[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = block
        return pi, J

    def limit(self, x: Array) -> Array:
        x = x.copy()
        x[10 * self.n_links :] = np.maximum(x[10 * self.n_links :], 0.0)
        return x

    def free(self, x: Array, gradient: Array) -> Array:
        """False for joint terms at zero that the descent would push below."""
        free = np.ones(len(x), bool)
        free[10 * self.n_links :] = (x[10 * self.n_links :] > 0) | (gradient[10 * self.n_links :] < 0)
        return free


def _is_possible(inertia: Inertia) -> bool:
    second = np.linalg.eigvalsh(np.trace(inertia.matrix) / 2 * np.eye(3) - inertia.matrix)
    return inertia.mass > 0 and bool(second[0] > 1e-4 * second[-1])


_FORM = PhysicalInertia()


def _link_vector(raw: torch.Tensor) -> torch.Tensor:
    """(m, h, I about the origin) of log-Cholesky factors, shape (10,)."""
    mass, c, inertia = _FORM.value(raw)
    about = inertia + mass * ((c * c).sum() * torch.eye(3, dtype=raw.dtype) - torch.outer(c, c))
    return torch.cat([mass, mass * c, about[0, :3], about[1, 1:], about[2, 2:]])


def solve_physical(
    A: Array, b: Array, form: Physical, x: Array, iterations: int = 300, progress: Progress | None = None
) -> tuple[Array, list[float]]:
    """Levenberg-Marquardt on |A pi(x) - b|^2 from x. Returns pi and the costs.

    Directions that the data say nothing about keep their starting values: the gradient has no part in them.
    """
    mu, costs = 1e-3, []
    pi, D = form(x)
    residual = A @ pi - b
    cost = float(residual @ residual)
    for k in range(iterations):
        costs.append(cost)
        if progress:
            progress(k, cost)
        J = A @ D
        gradient = J.T @ residual
        free = form.free(x, gradient)
        step, improved = np.zeros_like(x), False
        while mu < 1e12:
            step[free] = _damped(J[:, free], residual, mu)
            trial = form.limit(x + step / max(1.0, np.abs(step).max()))
            trial_pi, trial_D = form(trial)
            trial_residual = A @ trial_pi - b
            trial_cost = float(trial_residual @ trial_residual)
            if np.isfinite(trial_cost) and trial_cost < cost:
                improved = True
                break
            mu *= 4
        if not improved:
            break
        gain = (cost - trial_cost) / max(cost, 1e-300)
        x, pi, D, residual, cost = trial, trial_pi, trial_D, trial_residual, trial_cost
        mu = max(mu / 5, 1e-15)
        if gain < 1e-10 and mu < 1e-2:  # a small gain of a short step means nothing
            break
    costs.append(cost)
    return pi, costs


def _damped(J: Array, residual: Array, mu: float) -> Array:
    """Step of the damped normal equations, through a stacked least squares problem (their square would lose digits).

    Columns that are rounding errors are held by a damping that does not fade.
    """
    norms = np.linalg.norm(J, axis=0)
    damping = np.sqrt(mu) * norms + NO_EFFECT * norms.max(initial=1e-300)
    stacked = np.concatenate([J, np.diag(damping)])
    return -np.linalg.lstsq(stacked, np.concatenate([residual, np.zeros(J.shape[1])]), rcond=None)[0]


def blocks(n: int, held_out: float, parts: int = 10) -> tuple[Array, Array]:
    """Indices to train on and to hold out: contiguous stretches spread over the log, so that neither sees the other's noise."""
    if not 0 <= held_out < 1:
        raise ValueError(f"held_out must be in [0, 1), but is {held_out}")
    part = np.minimum(np.arange(n) * parts // max(n, 1), parts - 1)
    count = round(held_out * parts)
    chosen: Sequence[int] = [int((k + 0.5) * parts / count) for k in range(count)] if count else []
    mask = np.isin(part, chosen)
    return np.flatnonzero(~mask), np.flatnonzero(mask)
