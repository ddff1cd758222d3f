"""Laws of friction fitted to a log and compared by cross-validation on stretches of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from costate.core.arrays import Array
from costate.identify import solve
from costate.identify.base import Base
from costate.identify.drives.laws import KINDS, PLAIN, Law, Motion, laws
from costate.identify.filter import Filter
from costate.identify.log import Log
from costate.identify.noise.correlated import Scatter
from costate.identify.regressor import Regressor

FOLDS = 5
"""Number of parts of a cross-validation."""
STRETCHES = 20
"""Number of stretches of the log, which take turns in belonging to the parts."""
WORTH = 0.02
"""Least gain for which a law with more numbers is taken, relative to the error."""


@dataclass(frozen=True, eq=False)
class Drive:
    """The friction that was found beside damping and Coulomb friction."""

    law: Law
    weights: Array
    """Weights of the law's columns, shape (nv, k)."""
    rigid: Array
    """Parameters by which its load is computed, shape (size,)."""
    errors: dict[str, tuple[Array, float, float]]
    """Errors in cross-validation of every law that was tried: root mean square per joint (nv,) [N m or N]; mean of the ratio to
    Coulomb and viscous friction over joints, and its standard error over the parts of the log."""
    scatter: Scatter | None = None
    """Scatter of the base parameters and of the law's weights after them."""

    def torques(self, regressor: Regressor, log: Log) -> Array:
        """Return the friction of a log beyond damping and Coulomb friction, shape (N, nv)."""
        if not self.weights.size:
            return np.zeros_like(log.tau)
        return np.einsum("njk,jk->nj", self.law.columns(motion_of(regressor, log, self.rigid)), self.weights)

    def table(self) -> list[str]:
        """Return the comparison as lines of text."""
        if len(self.errors) < 2:
            return []
        lines = ["friction laws: error in cross-validation by that of Coulomb + viscous, +- standard error"]
        for name, (each, mean, doubt) in self.errors.items():
            per_joint = " ".join(f"{x:.3g}" for x in each)
            lines.append(
                f"  {name:<22}{mean:8.3f} +- {doubt:.3f}   [{per_joint}]{' <- taken' if name == self.law.name else ''}"
            )
        return lines


def motion_of(regressor: Regressor, log: Log, rigid: Array) -> Motion:
    """Return what friction depends on."""
    assert log.v is not None and log.a is not None
    t = np.arange(len(log), dtype=float) if log.t is None else log.t
    return Motion(t, log.v, regressor.torques(log.q, log.v, log.a, rigid))


def fit_drive(friction: str, regressor: Regressor, log: Log, filtered: Filter, index: Array, base: Base) -> Drive:
    """Fit a law of friction, or the best of all ("auto"). index: rows to use."""
    if friction not in (*KINDS, "auto"):
        raise ValueError(f"friction is {friction!r}; expected auto or one of {', '.join(KINDS)}")
    chosen = laws(list(KINDS)) if friction == "auto" else laws(["coulomb_viscous", friction])
    if friction == "coulomb_viscous":
        return Drive(PLAIN, np.zeros((log.tau.shape[1], 0)), np.zeros(regressor.size), {})
    folds = _folds(filtered, index, len(log))
    rigid = _rigid(regressor, log, folds, base)
    motion = motion_of(regressor, log, rigid)
    tried = [(law, *_validated(law, regressor, log, folds, base, motion)) for law in chosen]
    plain = tried[0][1]
    errors = {}
    for law, parts, *_ in tried:
        ratio = np.sqrt(parts / plain).mean(1)  # per fold, over joints
        doubt = float(ratio.std(ddof=1) / np.sqrt(len(ratio)))
        errors[law.name] = (np.sqrt(parts.mean(0)), float(np.sqrt(parts.mean(0) / plain.mean(0)).mean()), doubt)
    best = _best(tried, errors, friction == "auto")
    pi, own = best[2], best[0].columns(motion)
    columns = np.concatenate([base.independent, np.arange(regressor.size, len(pi))]).astype(int)
    scatter = _equations(regressor, log, filtered.within(index), own if own.shape[2] else None).scatter(
        columns, pi[columns], best[3]
    )
    return Drive(best[0], pi[regressor.size :].reshape(log.tau.shape[1], -1), rigid, errors, scatter)


def _best(
    tried: list[tuple[Law, Array, Array, Array]], errors: dict[str, tuple[Array, float, float]], plain_too: bool
) -> tuple[Law, Array, Array, Array]:
    """Return the law with the least error; a plain one stays if the others are not clearly better."""
    best = tried[0] if plain_too else tried[1]
    for each in tried[1:]:
        now, new = errors[best[0].name], errors[each[0].name]
        gain = now[1] - new[1]
        if gain > 0 and (not plain_too or gain > max(WORTH, new[2])):
            best = each
    return best


def _folds(filtered: Filter, index: Array, n: int) -> list[Filter]:
    part = np.minimum(np.arange(n) * STRETCHES // max(n, 1), STRETCHES - 1) % FOLDS
    allowed = np.zeros(n, bool)
    allowed[index] = True
    return [filtered.within(np.flatnonzero(allowed & (part == k))) for k in range(FOLDS)]


def _equations(regressor: Regressor, log: Log, fold: Filter, own: Array | None) -> solve.Equations:
    assert log.v is not None and log.a is not None
    return solve.Equations(regressor, log.q, log.v, log.a, log.tau, fold, own)


def _rigid(regressor: Regressor, log: Log, folds: list[Filter], base: Base) -> Array:
    """Return parameters that give the torques without friction and rotors."""
    whole = solve.Reduced.together([solve.Reduced.of(_equations(regressor, log, fold, None)) for fold in folds])
    pi = np.zeros(regressor.size)
    pi[base.independent] = solve.solve_linear(whole, base.independent, _scale(log)).beta
    pi[10 * len(regressor.links) :] = 0.0
    return pi


def _scale(log: Log) -> Array:
    return np.maximum(np.sqrt((log.tau**2).mean(0)), 1e-9)


def _validated(
    law: Law, regressor: Regressor, log: Log, folds: list[Filter], base: Base, motion: Motion
) -> tuple[Array, Array, Array]:
    """Return mean squared errors of folds that were left out (folds, nv); and all parameters by all folds, with the noise (nv,)."""
    own = law.columns(motion)
    own = own if own.shape[2] else None
    parts = [solve.Reduced.of(_equations(regressor, log, fold, own)) for fold in folds]
    columns = np.concatenate([base.independent, np.arange(regressor.size, parts[0].R[0].shape[1])]).astype(int)
    # Damping and Coulomb friction share columns with a law: without a sign one could grow at the cost of the other.
    resists = [own is not None and base.names[k].startswith(("damping:", "friction:")) for k in base.independent]
    positive = np.concatenate([np.array(resists, bool), np.tile(np.array(law.signs, bool), log.tau.shape[1])])
    errors = []
    for k, part in enumerate(parts):
        rest = solve.Reduced.together([p for i, p in enumerate(parts) if i != k])
        errors.append(part.misfit(_solve(rest, columns, positive, _scale(log))) / max(part.n, 1))
    whole = solve.Reduced.together(parts)
    pi = _solve(whole, columns, positive, _scale(log))
    return np.array(errors), pi, solve.solve_linear(whole, columns, _scale(log)).sigma


def _solve(data: solve.Reduced, columns: Array, positive: Array, scale: Array) -> Array:
    """Return all parameters by weighted least squares, with some that may not be negative."""
    linear = solve.solve_linear(data, columns, scale)
    pi = np.zeros(data.R[0].shape[1])
    pi[columns] = linear.beta
    if positive.any() and (linear.beta[positive] < 0).any():
        A, b = data.weighted(linear.sigma)
        size = np.maximum(np.linalg.norm(A[:, columns], axis=0), 1e-12)
        lower = np.where(positive, 0.0, -np.inf)
        pi[columns] = lsq_linear(A[:, columns] / size, b, (lower, np.inf), method="bvls").x / size
    return pi
