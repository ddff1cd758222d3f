"""The spread of errors: a histogram with two colours, what is allowed and what is not."""

from __future__ import annotations

import numpy as np

from costate.core.display import number
from costate.report.report import Report

WIDEST = 12.0
"""Largest error with a bar of its own, by the largest one that is allowed."""


def error_histogram(report: Report, error: np.ndarray, unit: str, allowed: float | None = None) -> None:
    """Add a histogram of errors (B,). allowed: largest error of a success; None: only one colour. The last bar holds everything
    beyond."""
    error = np.nan_to_num(error, nan=np.inf)
    title = f"Error, {len(error):,} episodes"
    top = float(np.quantile(error, 0.99))
    if allowed is None:
        width = (top if 0 < top < np.inf else 1.0) / 20
        count, middle = _counted(error, width * np.arange(22))
        series = {"episodes": count}
    else:
        top = float(np.clip(top, 1.5 * allowed, WIDEST * allowed))
        width = allowed / (20 if top <= 2 * allowed else 4)
        count, middle = _counted(error, width * np.arange(np.ceil(top / width) + 1))
        good = middle < allowed
        series = {
            f"within {number(allowed)} {unit}": np.where(good, count, np.nan),
            "beyond": np.where(good, np.nan, count),
        }
    last = f"{unit} (the last bar: {number(middle[-1] - width / 2)} and more)"
    report.plot(series, middle, title=title, x_label=last, y_label="episodes", bars=True)


def _counted(error: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many errors lie between edges, and the middles between them."""
    width = edges[1] - edges[0]
    count, _ = np.histogram(np.minimum(error, edges[-2] + width / 2), edges)
    return count, edges[:-1] + width / 2
