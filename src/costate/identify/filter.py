"""The same low-pass filter for torques and for everything that explains them, and fewer rows after it.

    F tau = F Y(q, v, a) pi + F noise

holds for any linear filter F, and F removes what a sensor hears but no motion explains. F is the filter by which the positions
were smoothed: a polynomial over the neighbours of a row. After it neighbours are nearly the same, so only some rows are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from costate.core.arrays import Array
from costate.identify.derivatives import window_weights

SMALLEST = 6
"""Half width of the window from which filtering is worth while."""


PART = 60
"""Number of half widths that a log must have at least: stretches that are held out lose one at each end."""


@dataclass(frozen=True, eq=False)
class Filter:
    """Weighted means over windows of rows, at some of the rows."""

    half: int
    """Half width of the windows [rows]; 0: no filter."""
    rows: Array
    """Rows that are kept, ascending, shape (m,)."""
    index: Array
    """Rows of each window, shape (m, width)."""
    weights: Array
    """Weights of these rows, shape (m, width)."""

    @staticmethod
    def none(n: int) -> Filter:
        """Return the filter that changes nothing in n rows."""
        rows = np.arange(n)
        return Filter(0, rows, rows[:, None], np.ones((n, 1)))

    @staticmethod
    def of(t: Array, halves: Array) -> Filter:
        """Return the filter of the typical window (half widths (n,)), with half a half width from row to row."""
        half = min(int(np.median(halves)), len(t) // PART) if halves.size else 0
        if half < SMALLEST:
            return Filter.none(len(t))
        rows = np.arange(half, len(t) - half, max(half // 2, 1))
        index, _, weights = window_weights(t, half, rows)
        return Filter(half, rows, index, weights[:, 0])

    def __len__(self) -> int:
        return len(self.rows)

    def within(self, allowed: Array) -> Filter:
        """Return the windows that lie within some rows, given as indices."""
        mask = np.zeros(int(self.index.max(initial=-1)) + 1, bool)
        mask[allowed[allowed < len(mask)]] = True
        keep = mask[self.index].all(1)
        return Filter(self.half, self.rows[keep], self.index[keep], self.weights[keep])

    def take(self, part: slice) -> Filter:
        """Return some of the windows."""
        return Filter(self.half, self.rows[part], self.index[part], self.weights[part])

    def span(self) -> slice:
        """Return the rows that the windows need."""
        return slice(int(self.index.min()), int(self.index.max()) + 1)

    def apply(self, x: Array, start: int = 0) -> Array:
        """Return the filtered rows (m, ...) of x (n, ...), whose first row has the number `start`."""
        if not self.half:
            return x[self.rows - start]
        return (self.matrix(len(x), start) @ x.reshape(len(x), -1)).reshape(len(self), *x.shape[1:])

    def matrix(self, n: int, start: int = 0) -> sparse.csr_matrix:
        """Return the filter as a matrix (m, n) for n rows, the first of which has the number `start`."""
        rows = np.repeat(np.arange(len(self)), self.index.shape[1])
        return sparse.csr_matrix((self.weights.ravel(), (rows, (self.index - start).ravel())), (len(self), n))
