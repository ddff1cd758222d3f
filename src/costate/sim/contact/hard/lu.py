"""Factorisation A = U D L of a square matrix from the tips to the root, without pivots.

In this order the zeros between branches of a tree stay zeros, as they do in `physics/algebra/ltl.py`; the matrix need not be
symmetric (friction that slides couples the normal load to it, but not the other way round).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.limits import excess

Rows = tuple[dict[int, SX], ...]


@dataclass(frozen=True, eq=False)
class LU:
    """Factors of a matrix, without their structural zeros."""

    above: Rows
    """above[i][k]: multiple of row i that was taken from row k < i."""
    below: Rows
    """below[i][j]: entry of row i to the left of its pivot, j < i."""
    inverse_pivots: tuple[SX, ...]

    @staticmethod
    def of(A: SX) -> LU:
        """Factor a matrix, shape (n, n)."""
        n, pattern = A.shape[0], A.sparsity()
        rows = [{j: A[i, j] for j in range(n) if pattern.has_nz(i, j)} for i in range(n)]
        if too_long := excess("operations", sum(len(row) ** 2 for row in rows)):
            raise ValueError(f"the factorisation of a matrix ({n}, {n}) is too long to compile: {too_long}")
        above: list[dict[int, SX]] = [{} for _ in range(n)]
        inverse: list[SX] = [SX(1)] * n
        for i in reversed(range(n)):
            inverse[i] = 1 / rows[i].pop(i)
            for k in range(i):
                if i in rows[k]:
                    part = above[i][k] = rows[k].pop(i) * inverse[i]
                    for j, value in rows[i].items():
                        rows[k][j] = rows[k][j] - part * value if j in rows[k] else -part * value
        return LU(tuple(above), tuple(rows), tuple(inverse))

    def solve(self, b: SX) -> SX:
        """Return A^-1 b, shape (n,)."""
        x = ca.vertsplit(ca.densify(b))
        for i in reversed(range(len(x))):
            for k, part in self.above[i].items():
                x[k] = x[k] - part * x[i]
        for i in range(len(x)):
            for j, value in self.below[i].items():
                x[i] = x[i] - value * x[j]
            x[i] = x[i] * self.inverse_pivots[i]
        return ca.vertcat(*x)

    def solve_transposed(self, b: SX) -> SX:
        """Return A^-T b, shape (n,)."""
        x = ca.vertsplit(ca.densify(b))
        for i in reversed(range(len(x))):
            x[i] = x[i] * self.inverse_pivots[i]
            for j, value in self.below[i].items():
                x[j] = x[j] - value * x[i]
        for i in range(len(x)):
            for k, part in self.above[i].items():
                x[i] = x[i] - part * x[k]
        return ca.vertcat(*x)

    # --- as numbers, so that one factorisation serves many right-hand sides in stages of their own -----------------------

    def numbers(self) -> SX:
        """Return all factors, one after the other."""
        both = (value for rows in (self.above, self.below) for row in rows for value in row.values())
        return ca.vertcat(*both, *self.inverse_pivots)

    def like(self, numbers: SX) -> LU:
        """Return factors with the zeros of these, and other numbers."""
        given: Iterator[SX] = iter(ca.vertsplit(numbers))
        above, below = (tuple({j: next(given) for j in row} for row in rows) for rows in (self.above, self.below))
        return LU(above, below, tuple(given))
