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


def differentiate(t: Array, q: Array, period: float | None = None, harmonics: int = 20) -> tuple[Array, Array, Array]:
    """Return smoothed positions, velocities and accelerations (N, n) from positions q (N, n) at times t (N,) [s].

    period: period of the motion [s], if it is periodic; harmonics: the highest one that is not noise.
    """
    if period is not None:
        return _fourier(t, q, period, harmonics)
    scores: list[tuple[Array, tuple[Array, Array, Array]]] = []
    for half in HALF_WIDTHS:
        if 2 * half + 1 > len(t) or 2 * half + 1 <= DEGREE + 1:
            continue
        smooth, leverage = _local(t, q, half)
        residual = ((q - smooth[0]) ** 2).mean(0)
        scores.append((residual / (1 - leverage) ** 2, smooth))
    if not scores:
        raise ValueError(f"{len(t)} samples are too few to differentiate; at least {2 * HALF_WIDTHS[0] + 1} are needed")
    choice = np.argmin([score for score, _ in scores], axis=0)
    picked = [np.stack([scores[k][1][d][:, j] for j, k in enumerate(choice)], -1) for d in range(3)]
    return picked[0], picked[1], picked[2]


def _local(t: Array, q: Array, half: int) -> tuple[tuple[Array, Array, Array], float]:
    """Return fits in windows of 2 half + 1 samples, and the mean leverage of a sample on its own fit."""
    n, width = len(t), 2 * half + 1
    first = np.clip(np.arange(n) - half, 0, n - width)
    steps = np.diff(t)
    is_uniform = np.ptp(steps) < UNIFORM * steps.mean()
    table = (
        _coefficients(np.arange(width), steps.mean() * np.tile(np.arange(width), (width, 1))) if is_uniform else None
    )
    out = np.empty((3, n, q.shape[1]))
    leverage = 0.0
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        index, place = first[rows, None] + np.arange(width), rows - first[rows]
        weights = table[place] if table is not None else _coefficients(place, t[index])
        out[:, rows] = np.einsum("ndw,nwj->dnj", weights, q[index])
        leverage += float(weights[np.arange(len(rows)), 0, place].sum())
    return (out[0], out[1], out[2]), leverage / n


def _coefficients(place: Array, t: Array) -> Array:
    """Return weights (n, 3, width) for position, velocity and acceleration at sample `place` of windows with times t (n, width)."""
    scale = (t[:, -1:] - t[:, :1]) / 2
    x = (t - np.take_along_axis(t, place[:, None], 1)) / scale
    V = x[..., None] ** np.arange(DEGREE + 1)
    # Row d of the pseudo-inverse gives the d-th coefficient of the polynomial around the sample itself.
    return np.linalg.pinv(V)[:, :3] * np.stack([scale**0, 1 / scale, 2 / scale**2], 1)


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
