"""Covariance of least squares whose errors go together from row to row, and 95 % intervals.

Errors e with covariance Omega reach an estimate as D sum_t U_t^T e_t, where U = X / sigma^2 are weighted rows and D = (X^T U)^-1:
its covariance is D U^T Omega U D. Omega has to come from residuals, and the fit has taken a part of the noise out of them:

    E[residual_t residual_s] = Omega_ts - (X D U^T Omega)_ts - (Omega U D X^T)_ts + (X D U^T Omega U D X^T)_ts

So every channel (a joint, or all sensors of a kind) gets an autoregression, its order chosen by Schwarz's criterion, whose
autocovariances are those of the residuals with that part put back; a few passes make both sides agree. Without it, slow noise
would look far too small, since a fit follows it.

Ripple and rounding depend on where a robot is: their correlation changes along a log, which an autoregression does not see. The
estimate of Newey & West (1987) does, but is too small for slow noise. So the larger of the two standard deviations counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.fft import irfft, rfft
from scipy.fft import next_fast_len
from scipy.special import stdtrit

from costate.core.arrays import Array

Stretch = tuple[Array, Array, Array]
"""Rows one after the other: columns X (n, channels, r), weighted columns U likewise (0 where not fitted), errors (n, channels)."""
ORDER = 36
"""Largest order of an autoregression."""
PASSES, ENOUGH = 8, 0.05
"""Number of passes at most; relative change of variances that is none."""
LEAST = 1e-3
"""Least variance of a channel's own noise, relative to that of its errors, and of an estimate, relative to that by its weights."""
FEW = 0.25
"""Effective sample size, relative to the number of rows, below which there is a note."""


def intervals(x: Array, std: Array, effective: Array | float = np.inf) -> tuple[Array, Array]:
    """Return both ends of the 95 % intervals of estimates x with standard deviations std.

    effective: sample size that the deviations were estimated from. In slow noise (an autoregression of order one) their squares
    scatter as chi-square does with half as many degrees of freedom, hence Student's distribution with so many.
    """
    wide = stdtrit(np.maximum(np.asarray(effective) / 2, 2.0), 0.975) * std
    return x - wide, x + wide


def record_intervals(x: Array, J: Array, residuals: Array, rows: int) -> tuple[Array, Array]:
    """Return both ends of the 95 % intervals of a fit x (r,) to a record of sensors of one kind.

    J: derivatives (rows * sensors, r) of the residuals (rows * sensors,), which are all weighted alike.
    """
    J = J.reshape(rows, -1, len(x))
    found = scatter([(J, J, residuals.reshape(rows, -1))], pooled=True)
    return intervals(x, found.std, found.effective)


@dataclass(frozen=True, eq=False)
class Scatter:
    """Scatter of estimates by least squares."""

    covariance: Array
    """Covariance of the estimates, shape (r, r)."""
    effective: Array
    """Effective sample size of each: number of rows with independent errors that would say as much about it, shape (r,)."""
    rows: int
    """Number of rows that were fitted."""

    @property
    def std(self) -> Array:
        """Standard deviations of the estimates, shape (r,)."""
        return np.sqrt(np.diag(self.covariance))

    def first(self, r: int) -> Scatter:
        """Return the scatter of the first r estimates."""
        return Scatter(self.covariance[:r, :r], self.effective[:r], self.rows)

    def notes(self) -> list[str]:
        """Return a note if the effective sample size is far below the number of rows."""
        worth = float(np.median(self.effective))
        text = (
            f"intervals: errors of neighbouring rows go together, so that {self.rows:,} rows say as much as {worth:,.0f} with "
            "independent errors; the intervals allow for it. A longer log narrows them, a higher rate does not"
        )
        return [text] if worth < FEW * self.rows else []


def scatter(
    stretches: Iterable[Stretch], *, pooled: bool = False, other: Array | None = None, foreign: Array | None = None
) -> Scatter:
    """Return how far the estimates of a fit scatter.

    Args:
        stretches: What was fitted; gone through several times.
        pooled: Whether all channels have the same noise, as sensors of a kind do, whatever they see: then short records are enough,
            and are too short for Newey and West's estimate.
        other: Covariance (r, r) of sum_t U_t^T e_t by noise that is known otherwise.
        foreign: Autocovariance (ORDER + 1, channels) of that noise in the errors, which is taken off theirs.
    """
    D = _inverse(np.asarray(sum(np.tensordot(X, U, ((0, 1), (0, 1))) for X, U, _ in stretches)))
    sums, taken, count, fitted = _sums(stretches, D)
    channels = sums.shape[1] if pooled else 1  # that share their noise
    taken_off = np.zeros_like(sums) if foreign is None else foreign[: len(sums)]

    def own(lags: Array) -> Array:
        """Return autocovariances from sums over rows, of the channel's own noise."""
        lags = np.repeat(lags.mean(1, keepdims=True), channels, 1) if pooled else lags
        return lags / count - taken_off[: len(lags)]

    # White noise comes first: its degrees of freedom are known, and it needs no passes.
    g = own(sums)
    whole = np.maximum(g[0] + taken_off[0], _TINY)
    g[0] = np.maximum(g[0] * count / np.maximum(count - (taken.mean() if pooled else taken), 1.0), LEAST * whole)
    sure = channels * count * np.minimum(g[0] / whole, 1.0) ** 2  # what is left of two sums is less sure than each
    models = [_autoregression(column, n) for column, n in zip(g.T, sure, strict=True)]
    orders = [len(a) - 1 for a, _ in models]
    B, power = D, g[0]  # covariance by the channels' own noise, and its variance
    for _ in range(PASSES):
        white, score, lost = _pass(stretches, models, power, D, B, max(orders))
        before, B = np.diag(B), D @ score @ D
        if not any(orders) or np.allclose(np.diag(B), before, rtol=ENOUGH, atol=0):
            break
        g = own(sums[: max(orders) + 1] + lost)
        g[0] = power = np.where(np.array(orders) > 0, np.maximum(g[0], LEAST * whole), power)
        models = [_autoregression(x, 0.0, k) if k else m for x, k, m in zip(g.T, orders, models, strict=True)]
    rest = LEAST * D + (0.0 if other is None else D @ other @ D)  # no estimate is without error
    C, rows = B + rest, fitted * channels
    if not pooled:
        varying = np.asarray(sum(_newey_west(_whitened(U, e, models)) for _, U, e in stretches))
        grown = np.sqrt(np.maximum(np.diag(D @ varying @ D) / np.diag(C), 1.0))
        C = C * np.outer(grown, grown)
    return Scatter(C, rows * np.minimum(np.diag(D @ white @ D + rest) / np.diag(C), 1.0), rows)


def _inverse(H: Array) -> Array:
    """Return the inverse of a matrix of normal equations, without what cannot be told apart."""
    size = np.sqrt(np.maximum(np.outer(np.diag(H), np.diag(H)), _TINY))
    return np.linalg.pinv(H / size, 1e-13, hermitian=True) / size


def _sums(stretches: Iterable[Stretch], D: Array) -> tuple[Array, Array, int, int]:
    """Return sums of products of errors with their neighbours (order + 1, channels), degrees of freedom that the fit has taken
    (channels,), and the numbers of rows and of rows fitted."""
    sums, taken, count, longest, fitted = np.zeros(()), np.zeros(()), 0, 0, 0
    for X, U, e in stretches:
        sums = sums + lag_sums(e[..., None], e[..., None], ORDER)
        taken = taken + ((X @ D) * U).sum((0, 2))
        count, longest = count + len(e), max(longest, len(e))
        fitted += int((U != 0).any((1, 2)).sum())
    return sums[: longest // 4 + 1], taken, count, fitted


def _pass(
    stretches: Iterable[Stretch], models: list[tuple[Array, float]], power: Array, D: Array, B: Array, order: int
) -> tuple[Array, Array, Array]:
    """Return U^T Omega U for white noise and for autoregressions, and the lag sums that residuals lack (order + 1, channels)."""
    white, score, lost = np.zeros_like(D), np.zeros_like(D), np.zeros((order + 1, len(models)))
    for X, U, _ in stretches:
        V = U * power[:, None]  # Omega U
        white += np.tensordot(U, V, ((0, 1), (0, 1)))
        if order:
            n, XD = next_fast_len(2 * len(X)), X @ D
            spectra = np.stack([s / np.abs(rfft(a, n)) ** 2 for a, s in models], 1)
            V = irfft(rfft(U, n, axis=0) * spectra[..., None], n, axis=0)[: len(X)]
            lost += lag_sums(XD, V, order) + lag_sums(V, XD, order) - lag_sums(X @ B, X, order)
        score += np.tensordot(U, V, ((0, 1), (0, 1)))
    return white, score, lost


def lag_sums(a: Array, b: Array, order: int) -> Array:
    """Return the sums over rows t and columns of a_t b_(t + k), k = 0 to order, of (n, channels, r): (order + 1, channels)."""
    return np.stack([np.einsum("tcr,tcr->c", a[: max(len(a) - k, 0)], b[k:]) for k in range(order + 1)])


def _autoregression(g: Array, n: float, order: int | None = None) -> tuple[Array, float]:
    """Return a (order + 1,) and the variance s of an autoregression sum_k a_k e_(t - k) with the autocovariances g (K + 1,).

    By Levinson's recursion; its order is given, or the one of the least n log s + 2 order log n: twice the price Schwarz (1978)
    puts on a coefficient, so that white noise hardly ever looks correlated.
    """
    a, s = np.ones(1), max(float(g[0]), _TINY)
    best, least, price = (a, s), n * np.log(s), 2 * np.log(max(n, 2.0))
    for k in range(1, len(g) if order is None else order + 1):
        reflection = -float(a @ g[k:0:-1]) / s
        if not abs(reflection) < 1 - 1e-6:
            break
        a = np.append(a, 0.0)
        a, s = a + reflection * a[::-1], s * (1 - reflection**2)
        if order is not None or n * np.log(s) + k * price < least:
            best, least = (a, s), n * np.log(s) + k * price
    return best


def _whitened(U: Array, e: Array, models: list[tuple[Array, float]]) -> Array:
    """Return rows (n, r) with the sum U^T e, of which neighbours go together no more than autoregressions leave them."""
    n = next_fast_len(2 * len(e))
    filters = np.stack([rfft(a, n) for a, _ in models], 1)
    innovations = irfft(rfft(e, n, axis=0) * filters, n, axis=0)[: len(e)]
    through = irfft(rfft(U, n, axis=0) / filters.conj()[..., None], n, axis=0)[: len(e)]
    return np.einsum("tcr,tc->tr", through, innovations)


def _newey_west(z: Array) -> Array:
    """Return the covariance of a sum of rows z (n, r) that go together over some of them: triangular weights up to sqrt(n) lags."""
    wide = max(int(np.sqrt(len(z))), 1)
    total = np.concatenate([np.zeros((wide, z.shape[1])), np.cumsum(z, 0), np.repeat(z.sum(0)[None], wide - 1, 0)])
    blocks = total[wide:] - total[:-wide]  # sums of all windows of that width, those over the ends as well
    return blocks.T @ blocks / wide


_TINY = 1e-300
