"""Velocities and accelerations from noisy positions, without delay.

local:     around every sample a polynomial of degree 5 is fitted to its neighbours (Savitzky & Golay, for any time stamps);
           generalised cross-validation chooses the width of the window, so that noise is removed and motion is not
periodic:  a Fourier series of the known period is fitted to everything, for motions such as those of `cs.excite`
"""

from __future__ import annotations

import numpy as np

from costate.core.arrays import Array

DEGREE = 5
HALF_WIDTHS = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
UNIFORM = 1e-6
"""Relative spread of the time steps below which all windows are treated as equal."""
_BLOCK = 2048
_TYPICAL = 0.97
"""Part of the rows that counts in that comparison: single jolts must not decide about the rest."""
_JUDGED = 3000
"""Number of rows on which windows are compared."""


def differentiate(
    t: Array, q: Array, period: float | None = None, harmonics: int = 20, halves: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return smoothed positions, velocities and accelerations (N, n) from positions q (N, n) at times t (N,) [s].

    period: period of the motion [s], if it is periodic; harmonics: the highest one that is not noise.
    halves: half widths of the windows (n,), if `windows` was asked for them already.
    """
    if period is not None:
        return _fourier(t, q, period, harmonics)
    halves = windows(t, q) if halves is None else halves
    out = np.empty((3, *q.shape))
    for half in np.unique(halves):
        out[:, :, halves == half] = smoothed(t, q[:, halves == half], int(half))
    return out[0], out[1], out[2]


def windows(t: Array, q: Array) -> Array:
    """Return the half width of the window of each column, shape (n,), by generalised cross-validation on some of the rows."""
    rows = np.unique(np.linspace(0, len(t) - 1, _JUDGED).astype(int)) if len(t) > _JUDGED else np.arange(len(t))
    tried = [half for half in HALF_WIDTHS if DEGREE + 1 < 2 * half + 1 <= len(t)]
    if not tried:
        raise ValueError(f"{len(t)} samples are too few to differentiate; at least {2 * HALF_WIDTHS[0] + 1} are needed")
    scores = []
    for half in tried:
        smooth, leverage = _local(t, q, half, rows)
        error = np.sort((q[rows] - smooth[0]) ** 2, axis=0)[: int(_TYPICAL * len(rows)) + 1]
        scores.append(error.mean(0) / (1 - leverage) ** 2)
    return np.array(tried)[np.argmin(scores, axis=0)]


def smoothed(t: Array, x: Array, half: int) -> tuple[Array, Array, Array]:
    """Return x (N, n), its first and second derivative from polynomials in windows of 2 half + 1 samples."""
    return _local(t, x, half, np.arange(len(t)))[0]


def _local(t: Array, q: Array, half: int, wanted: Array) -> tuple[tuple[Array, Array, Array], float]:
    """Return fits in windows of 2 half + 1 samples at some rows, and the mean leverage of a sample on its own fit."""
    out = np.empty((3, len(wanted), q.shape[1]))
    leverage = 0.0
    for start in range(0, len(wanted), _BLOCK):
        part = slice(start, start + _BLOCK)
        index, place, weights = window_weights(t, half, wanted[part])
        out[:, part] = np.einsum("ndw,nwj->dnj", weights, q[index])
        leverage += float(weights[np.arange(len(index)), 0, place].sum())
    return (out[0], out[1], out[2]), leverage / len(wanted)


def window_weights(t: Array, half: int, rows: Array) -> tuple[Array, Array, Array]:
    """Return the samples of each row's window (n, width), the row's place in it (n,), and weights (n, 3, width)."""
    n, width = len(t), 2 * half + 1
    first = np.clip(rows - half, 0, n - width)
    index, place = first[:, None] + np.arange(width), rows - first
    steps = np.diff(t)
    if np.ptp(steps) < UNIFORM * steps.mean():
        table = _coefficients(np.arange(width), steps.mean() * np.tile(np.arange(width), (width, 1)))
        return index, place, table[place]
    weights = np.empty((len(rows), 3, width))
    edge = place != half  # powers of times on one side only are nearly dependent: there the slower way
    weights[edge] = _coefficients(place[edge], t[index[edge]])
    weights[~edge] = _central(t[index[~edge]], half)
    return index, place, weights


def _coefficients(place: Array, t: Array) -> Array:
    """Return weights (n, 3, width) for position, velocity and acceleration at sample `place` of windows with times t (n, width)."""
    V, scale = _powers(t, np.take_along_axis(t, place[:, None], 1))
    # Row d of the pseudo-inverse gives the d-th coefficient of the polynomial around the sample itself.
    return np.linalg.pinv(V)[:, :3] * scale


def _central(t: Array, half: int) -> Array:
    """Return the same for the middle of windows, by normal equations, which is ten times faster."""
    V, scale = _powers(t, t[:, half : half + 1])
    V_T = np.swapaxes(V, 1, 2)
    try:
        return np.linalg.solve(V_T @ V, V_T)[:, :3] * scale
    except np.linalg.LinAlgError:  # rows that lie far apart, in groups
        return np.linalg.pinv(V)[:, :3] * scale


def _powers(t: Array, centre: Array) -> tuple[Array, Array]:
    """Return powers of scaled times (n, width, degree + 1), and the factors that turn coefficients into derivatives."""
    scale = (t[:, -1:] - t[:, :1]) / 2
    V = ((t - centre) / scale)[..., None] ** np.arange(DEGREE + 1)
    return V, np.stack([scale**0, 1 / scale, 2 / scale**2], 1)


def _fourier(t: Array, q: Array, period: float, harmonics: int) -> tuple[Array, Array, Array]:
    if 2 * harmonics + 1 >= len(t):
        raise ValueError(f"{len(t)} samples cannot determine {harmonics} harmonics; give fewer")
    w = 2 * np.pi / period * np.arange(1, harmonics + 1)
    s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    one, none = np.ones((len(t), 1)), np.zeros((len(t), 1))
    coefficients = np.linalg.lstsq(np.hstack([one, s, c]), q, rcond=None)[0]
    velocity = np.hstack([none, c * w, -s * w])
    acceleration = np.hstack([none, -s * w**2, -c * w**2])
    return np.hstack([one, s, c]) @ coefficients, velocity @ coefficients, acceleration @ coefficients
