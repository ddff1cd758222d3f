"""The best parameters that are physically possible: a convex problem.

    minimise  |A pi - b|^2 + gamma * sum over links of D(P(pi), P(prior)),   gamma -> small

Least squares alone finds masses below zero and inertias that no body has, wherever the data say little. What is possible has a
simple form: the 4 x 4 pseudo-inertia P of a link is linear in its ten parameters pi, and positive definite exactly if some
distribution of mass has it. So this is a convex problem, like an interior-point method with a barrier that has a meaning:

    D(P, P0) = tr(P0^-1 P) - log det(P0^-1 P) - 4

is the distance from the prior P0, whatever units and frames are chosen (Lee, Wensing & Park, 2020). It grows without bound
where P ceases to be positive definite, so Newton's iterations stay possible, and it holds at the prior what the data say nothing
about. Joint terms are treated likewise, with numbers for matrices. `solve_possible` follows the minimum while gamma falls by
factors of ten; each Newton step is one QR factorisation of the data's triangular factor on top of a root of D's Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from costate.core.arrays import Array
from costate.identify.base import NO_EFFECT
from costate.identify.regressor import Regressor, inertia_of, inertial_vector
from costate.model import Inertia

Progress = Callable[[int, float], None]
"""Function that is called with the iteration and the cost."""

WEIGHT = 1e-3
"""Last value of gamma. Costs have unit variance, so the prior counts as a thousandth of a single sample."""
SMALLEST = 1e-3
"""Prior value of a joint term that is zero [SI units]: D needs a positive one."""
UNKNOWN = 1e-3
"""Weight of a rotor's inertia that is zero in the file, beside 1 of one that is given: nobody measured it."""
_NEWTON_STEPS = 30


def _pseudo_basis() -> Array:
    """Return E with P = sum of pi_i E_i, shape (10, 4, 4): second moment from I by J = tr(I)/2 - I, first moment, mass."""
    E = np.zeros((10, 4, 4))
    E[0, 3, 3] = 1.0
    for k in range(3):
        E[1 + k, k, 3] = E[1 + k, 3, k] = 1.0
    for k, (i, j) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
        I = np.zeros((3, 3))
        I[i, j] = I[j, i] = 1.0
        E[4 + k, :3, :3] = np.trace(I) / 2 * np.eye(3) - I
    return E


_E = _pseudo_basis()


@dataclass(frozen=True, eq=False)
class Divergence:
    """The sum of D over links and joint terms, as a function of pi."""

    links: Array
    """Inverse prior pseudo-inertias, shape (links, 4, 4)."""
    joints: Array
    """Prior joint terms, shape (joints,)."""
    weights: Array
    """Weights of the joint terms, shape (joints,)."""

    @staticmethod
    def of(regressor: Regressor, prior: Array, rotors: Array | None = None) -> tuple[Divergence, Array]:
        """Return the divergence from a prior, and the prior itself, made possible where it was not.

        rotors: inertia that each joint moves (joint terms,), as a measure for rotors that the file leaves out. Files often do; were
        their inertia held near zero, links would have to be heavier instead.
        """
        n = len(regressor.links)
        start = prior.copy()
        for k in range(n):
            start[10 * k : 10 * k + 10] = _nearest_possible(prior[10 * k : 10 * k + 10])
        start[10 * n :] = np.maximum(prior[10 * n :], SMALLEST)
        weights = np.ones(len(prior) - 10 * n)
        if rotors is not None:
            missing = (prior[10 * n :] <= 0) & (rotors > 0)
            start[10 * n :][missing] = np.maximum(rotors[missing], SMALLEST)
            weights[missing] = UNKNOWN
        P = np.einsum("li,iab->lab", start[: 10 * n].reshape(n, 10), _E)
        return Divergence(np.linalg.inv(P) if n else P, start[10 * n :], weights), start

    def value(self, pi: Array) -> float:
        """Return the divergence, which is infinite where pi is impossible."""
        P, x = self._split(pi)
        if x.size and x.min() <= 0:
            return np.inf
        total = float((self.weights * (x / self.joints - np.log(x / self.joints) - 1)).sum())
        for own, inverse in zip(P, self.links, strict=True):
            values = np.linalg.eigvalsh(own)
            if values[0] <= 0:
                return np.inf
            _, log_det = np.linalg.slogdet(inverse)
            total += float(np.trace(inverse @ own) - np.log(values).sum() - log_det - 4)
        return total

    def factors(self, pi: Array) -> tuple[Array, Array]:
        """Return L and L^-1 g, for the gradient g and the Hessian L L^T."""
        P, x = self._split(pi)
        n = len(pi)
        L, y = np.zeros((n, n)), np.zeros(n)
        for k, (own, inverse) in enumerate(zip(P, self.links, strict=True)):
            now = np.linalg.inv(own)
            part = np.einsum("ab,ibc->iac", now, _E)
            H = np.einsum("iab,jba->ij", part, part)
            g = np.einsum("ab,iba->i", inverse, _E) - np.einsum("iaa->i", part)
            rows = slice(10 * k, 10 * k + 10)
            # Scaled, because masses and moments differ by orders of magnitude.
            d = np.sqrt(np.diag(H))
            L[rows, rows] = d[:, None] * _root(H / np.outer(d, d))
            y[rows] = np.linalg.solve(L[rows, rows], g)
        at = np.arange(10 * len(self.links), n)
        L[at, at] = np.sqrt(self.weights) / x
        y[at] = np.sqrt(self.weights) * (x / self.joints - 1)
        return L, y

    def _split(self, pi: Array) -> tuple[Array, Array]:
        n = len(self.links)
        return np.einsum("li,iab->lab", pi[: 10 * n].reshape(n, 10), _E), pi[10 * n :]


def _root(H: Array) -> Array:
    """Return the Cholesky factor of a matrix with ones on its diagonal, which may be singular but for rounding."""
    for shift in (1e-14, 1e-12, 1e-10):
        try:
            return np.linalg.cholesky(H + shift * np.eye(len(H)))
        except np.linalg.LinAlgError:
            continue
    values, vectors = np.linalg.eigh(H)
    # Any square root will do; a triangular one is that of the QR factors.
    root = np.sqrt(np.maximum(values, 1e-10))[:, None] * vectors.T
    R = np.linalg.qr(root, mode="r")
    return (np.where(np.diag(R) < 0, -1.0, 1.0)[:, None] * R).T


def solve_possible(
    A: Array,
    b: Array,
    regressor: Regressor,
    prior: Array,
    progress: Progress | None = None,
    rotors: Array | None = None,
) -> tuple[Array, list[float]]:
    """Find the minimum by Newton's method along decreasing gamma. Returns pi and the cost |A pi - b|^2 after every step.

    Masses without any effect on torques keep their value. rotors: see `Divergence.of`.
    """
    divergence, pi = Divergence.of(regressor, prior, rotors)
    norms = np.linalg.norm(A, axis=0)
    mass = np.zeros(len(pi), bool)
    mass[0 : 10 * len(regressor.links) : 10] = True
    free = ~(mass & (norms <= NO_EFFECT * norms.max(initial=0.0)))
    costs = [_squares(A, b, pi)]
    gamma = max(costs[0], WEIGHT)
    while True:
        for _ in range(_NEWTON_STEPS):
            pi, decrement = _newton_step(A, b, divergence, pi, gamma, free)
            costs.append(_squares(A, b, pi))
            if progress:
                progress(len(costs) - 1, costs[-1])
            if decrement < 1e-9 * gamma:
                break
        if gamma <= WEIGHT:
            return pi, costs
        gamma = max(gamma / 10, WEIGHT)


def _newton_step(
    A: Array, b: Array, divergence: Divergence, pi: Array, gamma: float, free: Array
) -> tuple[Array, float]:
    """Return pi after one step with line search in the free parameters, and the decrease that was expected."""
    L, y = divergence.factors(pi)
    root = np.sqrt(gamma / 2)  # |.|^2 has the Hessian 2 A^T A
    residual = A @ pi - b
    Q, R = np.linalg.qr(np.concatenate([A, root * L.T])[:, free])
    right = np.concatenate([residual, root * y])
    step = np.zeros(len(pi))
    step[free] = -np.linalg.solve(R, Q.T @ right)
    decrement = float(((Q.T @ right) ** 2).sum())
    now = _squares(A, b, pi) + gamma * divergence.value(pi)
    length = 1.0
    while length > 1e-8:
        trial = pi + length * step
        value = _squares(A, b, trial) + gamma * divergence.value(trial)
        if np.isfinite(value) and value <= now:
            return trial, decrement
        length /= 2
    return pi, 0.0


def _squares(A: Array, b: Array, pi: Array) -> float:
    return float(((A @ pi - b) ** 2).sum())


def _nearest_possible(pi: Array) -> Array:
    """Return the parameters of a link, with the eigenvalues of its second moment made positive."""
    inertia = inertia_of(pi)
    mass = max(inertia.mass, SMALLEST)
    values, vectors = np.linalg.eigh(np.trace(inertia.matrix) / 2 * np.eye(3) - inertia.matrix)
    least = max(1e-3 * values.max(), 1e-8 * mass)
    if inertia.mass == mass and values.min() >= least:
        return pi
    second = vectors @ np.diag(np.maximum(values, least)) @ vectors.T
    return inertial_vector(Inertia(mass, inertia.com, np.trace(second) * np.eye(3) - second))
