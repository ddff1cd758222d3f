"""Factorisation M = L^T D L of a mass matrix, from the tips to the root (Featherstone, 2005).

In this order the zeros between branches of a tree stay zeros. Mimic joints fill in some of them; the sparsity pattern
follows from the matrix by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
from casadi import SX

from costate.core.limits import excess
from costate.physics.algebra.spatial import symmetric


@dataclass(frozen=True, eq=False)
class Factor:
    """Factors of M = L^T D L with L unit lower triangular."""

    rows: tuple[dict[int, SX], ...]
    """Rows of L: rows[i][j] = L_ij for j < i, without structural zeros."""
    inverse_pivots: tuple[SX, ...]
    """Inverse pivots 1 / D_i."""

    def solve(self, b: SX) -> SX:
        """Return M^-1 b, shape (nv,). Structural zeros of b cost nothing until the second half."""
        x = ca.vertsplit(b)
        for i in reversed(range(len(x))):
            if x[i].nnz():
                for j, value in self.rows[i].items():
                    x[j] = x[j] - value * x[i]
        x = [xi * pivot for xi, pivot in zip(x, self.inverse_pivots, strict=True)]
        for i in range(len(x)):
            for j, value in self.rows[i].items():
                if x[j].nnz():
                    x[i] = x[i] - value * x[j]
        return ca.densify(ca.vertcat(*x))

    def flat(self) -> SX:
        """Return all entries as a column."""
        return ca.vertcat(*(value for row in self.rows for value in row.values()), *self.inverse_pivots)

    def filled(self, flat: SX) -> Factor:
        """Return the factors with the same zeros and other entries."""
        entries = iter(ca.vertsplit(flat))
        rows = tuple({j: next(entries) for j in row} for row in self.rows)
        return Factor(rows, tuple(entries))

    def inverse(self) -> Inverse:
        """Return the inverse of L, for many solves with the same factors."""
        n = len(self.rows)
        K: list[SX] = []
        for i, row in enumerate(self.rows):
            own = SX(1, n)
            own[i] = 1
            for j, value in row.items():
                own -= value * K[j]
            K.append(own)
        return Inverse(ca.vertcat(*K), ca.vertcat(*self.inverse_pivots))


@dataclass(frozen=True, eq=False)
class Inverse:
    """Factors of M^-1 = K D^-1 K^T with K = L^-1, which has the zeros of a tree, too."""

    K: SX
    inverse_pivots: SX
    """Inverse pivots 1 / D_i, shape (nv,)."""

    def times(self, B: SX) -> SX:
        """Return M^-1 B, shape (nv, n).

        Zeros of B cost nothing: accelerations of branches that it leaves alone follow from those of the bodies that carry them.
        """
        scaled = self.K.T @ B
        return self.K @ (ca.repmat(self.inverse_pivots, 1, B.shape[1]) * scaled)

    def matrix(self) -> SX:
        """Return M^-1, shape (nv, nv)."""
        return symmetric(self.times(SX.eye(self.K.shape[0])))


def factor(M: SX, least_pivot: SX | None = None) -> Factor:
    """Factor a symmetric positive definite matrix, shape (n, n), of which only the lower triangle is read.

    least_pivot: Lower bound of all pivots, such as the smallest eigenvalue; pivots that rounding pushed below it are
        raised to it.
    """
    n = M.shape[0]
    entries: list[dict[int, SX]] = [{j: M[i, j] for j in range(i + 1) if M.sparsity().has_nz(i, j)} for i in range(n)]
    # A lower bound: entries that fill in come on top.
    if too_long := excess("operations", sum(len(row) ** 2 for row in entries) / 2):
        raise ValueError(f"the factorisation of a matrix ({n}, {n}) is too long to compile: {too_long}")
    inverse_pivots: list[SX] = [SX(1)] * n
    for i in reversed(range(n)):
        row = entries[i]
        pivot = row.pop(i, SX(1, 1))
        inverse_pivots[i] = 1 / (pivot if least_pivot is None else ca.fmax(pivot, least_pivot))
        scaled = {j: value * inverse_pivots[i] for j, value in row.items()}
        for j in row:
            for k in (k for k in row if k <= j):
                entries[j][k] = entries[j].get(k, SX(1, 1)) - scaled[j] * row[k]
        entries[i] = scaled
    return Factor(tuple(entries), tuple(inverse_pivots))
