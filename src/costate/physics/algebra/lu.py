"""Solution of A x = b where A is not symmetric but near a mass matrix: elimination from the tips to the root, without pivoting."""

from __future__ import annotations

import casadi as ca
from casadi import SX


def lu_solve(A: SX, b: SX) -> SX:
    """Return A^-1 b, shape (n,). Zeros between branches of a tree stay zeros, as in `ltl.factor`."""
    n = A.shape[0]
    rows = [{j: A[i, j] for j in range(n) if A.sparsity().has_nz(i, j)} for i in range(n)]
    x = ca.vertsplit(ca.densify(b))
    for i in reversed(range(n)):
        pivot = 1 / rows[i][i]
        for k in range(i):
            if i not in rows[k]:
                continue
            part = rows[k].pop(i) * pivot
            x[k] = x[k] - part * x[i]
            for j, value in rows[i].items():
                if j < i:
                    rows[k][j] = rows[k].get(j, SX(1, 1)) - part * value
    for i in range(n):
        known = sum((value * x[j] for j, value in rows[i].items() if j < i), SX(0))
        x[i] = (x[i] - known) / rows[i][i]
    return ca.densify(ca.vertcat(*x))
