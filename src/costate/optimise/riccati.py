"""The backward pass of iterative LQR, compiled: gains of a linear-quadratic problem with bounds on its controls.

    minimise  sum_t g_t . z_t + z_t . H_t z_t / 2  over  dx_{t+1} = J_t z_t + gap_t,   z_t = (dx_t, du_t),  low_t <= du_t <= high_t

The kernel is one reverse scan over time. It carries the value function of the steps that follow, its gradient v and Hessian V, and
the change of the cost that has been predicted so far. `_step_back` is its body, one step back in time:

1. `_shift`: move the value function across the gap.
2. `_model`: Q = H + J^T V J,  q = g + J^T (v + V gap), the cost of this step and all that follow, in blocks of x and u.
3. `_newton`, or `_box` with bounds: k = argmin over du in the box, with a Cholesky factor of Quu and the set of free controls.
4. `_gain_rows`: K = -Quu^-1 Qux on the controls that are free, and zero on those at a bound.
5. `_value`: V <- Qxx + S K + (S K)^T with S = K^T Quu / 2 + Qxu;   v <- qx + K^T (Quu k + qu) + Qxu k.

Products of matrices are loops over rows (`_product`), so that the code stays small for large robots.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import casadi as ca
from casadi import SX

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import DYNAMIC, Program, Var

QP_ITERATIONS = 40
"""Largest number of projected Newton steps in a box problem."""
QP_STEPS = (1.0, 0.5, 0.2, 0.05, 0.005)
"""Lengths tried along a projected Newton step; the best is taken."""
QP_TOLERANCE = 1e-10
"""Largest motion of a control, relative to one plus the width of its box, at which a box problem is solved."""


@cache
def riccati_kernel(n: int, m: int, bounded: bool) -> Kernel:
    """Build the kernel of the backward pass for n state and m control coordinates.

    Inputs: J (T, n (n + m)), gradient (T, n + m), hessian (T, (n + m)^2), gap (T, n), low, high (T, m) if bounded;
    last_gradient (n), last_hessian (n^2), damping (1).
    Outputs: k (T, m), K_T (T, n m) which is K transposed, and the change (1) of the cost that the model predicts.

    If Quu is not positive definite at some time, all outputs for earlier times are NaN.
    """
    z = n + m
    b = ProgramBuilder("riccati")
    rows = {"J": n * z, "gradient": z, "hessian": z * z, "gap": n} | ({"low": m, "high": m} if bounded else {})
    sequences = [b.input(name, (DYNAMIC, size)) for name, size in rows.items()]
    v, V, damping = b.input("last_gradient", n), b.input("last_hessian", n * n), b.input("damping", 1)
    body = _step_back(n, m, bounded)
    start = [v, V, b.constant([0.0])]
    (_, _, change), (k, K_T), _ = b.scan(body, DYNAMIC, start, sequences, [damping], reverse=True)
    b.output("k", k, (DYNAMIC, m))
    b.output("K_T", K_T, (DYNAMIC, n * m))
    b.output("change", change)
    return b.kernel()


def _step_back(n: int, m: int, bounded: bool) -> Program:
    """Build the body of the scan: (v, V, change, row of each sequence, damping) -> (v, V, change, k, K_T)."""
    z = n + m
    b = ProgramBuilder("step_back")
    v, V, change, J, g, H, gap = b.inputs(v=n, V=n * n, change=1, J=n * z, g=z, H=z * z, gap=n)
    box = b.inputs(low=m, high=m) if bounded else []
    damping = b.input("damping", 1)
    ahead, changed = b.trace(_shift, v, (V, (n, n)), gap, change)
    JVJ = _product(b, _product(b, _transposed(b, J, n, z), V, z, n, n), J, z, n, z)
    qx, qu, Quu, Qxu, Qxx = b.trace(_model, g, (H, (z, z)), (J, (n, z)), (JVJ, (z, z)), ahead)
    if bounded:
        k, L, free = _box(b, m, qu, Quu, damping, *box)
    else:
        k, L, free = b.trace(_newton, qu, (Quu, (m, m)), damping)
    _, (K_T, S), _ = b.scan(_gain_row, n, [], [Qxu], [L, free, Quu])
    SK = _product(b, S, _transposed(b, K_T, n, m), n, m, n)
    known = (Quu, (m, m)), (Qxu, (n, m)), (Qxx, (n, n)), k, (K_T, (n, m)), (SK, (n, n)), changed
    v1, V1, change1 = b.trace(_value, qx, qu, *known)
    for name, value in {"v": v1, "V": V1, "change": change1, "k": k, "K_T": K_T}.items():
        b.output(name, value)
    return b.program()


def _product(b: ProgramBuilder, left: Var, right: Var, rows: int, inner: int, columns: int) -> Var:
    """Multiply left @ right row by row; all matrices are row-major."""
    return b.scan(lambda row, B: ca.reshape(B, columns, inner) @ row, rows, [], [left], [right])[1][0]


def _transposed(b: ProgramBuilder, value: Var, rows: int, columns: int) -> Var:
    return b.trace(lambda A: A.T, (value, (rows, columns)))


def _shift(v: SX, V: SX, gap: SX, change: SX) -> tuple[SX, SX]:
    """Return the gradient of the value function after the gap, and the change of its value."""
    Vg = V @ gap
    return v + Vg, change + ca.dot(gap, v + Vg / 2)


def _model(g: SX, H: SX, J: SX, JVJ: SX, v: SX) -> tuple[SX, ...]:
    """Compute q = g + J^T v and Q = H + J^T V J, in blocks of x and u."""
    n = v.numel()
    q, Q = g + J.T @ v, H + JVJ
    return q[:n], q[n:], Q[n:, n:], Q[:n, n:], Q[:n, :n]


def _cholesky(A: SX) -> list[list[SX]]:
    """Return the L with L L^T = A, its diagonal inverted; NaN if A is not positive definite."""
    m = A.shape[0]
    L: list[list[SX]] = []
    for i in range(m):
        row: list[SX] = []
        for j in range(i):
            row.append((A[i, j] - sum((row[k] * L[j][k] for k in range(j)), SX(0))) * L[j][j])
        row.append(1 / ca.sqrt(A[i, i] - sum((x * x for x in row), SX(0))))
        L.append(row)
    return L


def _packed(L: list[list[SX]]) -> SX:
    return ca.vertcat(*(x for row in L for x in row))


def _unpacked(x: SX, m: int) -> list[list[SX]]:
    return [[x[i * (i + 1) // 2 + j] for j in range(i + 1)] for i in range(m)]


def _solve(L: list[list[SX]], b: SX) -> SX:
    m = len(L)
    y: list[SX] = []
    for i in range(m):
        y.append((b[i] - sum((L[i][j] * y[j] for j in range(i)), SX(0))) * L[i][i])
    for i in reversed(range(m)):
        y[i] = (y[i] - sum((L[j][i] * y[j] for j in range(i + 1, m)), SX(0))) * L[i][i]
    return ca.vertcat(*y)


def _newton(q: SX, Q: SX, damping: SX) -> tuple[SX, SX, SX]:
    """Solve without bounds: (qu, Quu, damping) -> (k, Cholesky factor, all controls free)."""
    m = q.numel()
    L = _cholesky(Q + damping * SX.eye(m))
    return -_solve(L, q), _packed(L), SX.ones(m)


def _box(b: ProgramBuilder, m: int, q: Var, Q: Var, damping: Var, low: Var, high: Var) -> tuple[Var, Var, Var]:
    """Solve with bounds by projected Newton (Bertsekas 1982).

    Controls at a bound that push against it are held; the others make a Newton step.
    """
    shared = [q, Q, damping, low, high]
    start = b.trace(lambda low, high: (_clipped(SX.zeros(m), low, high), SX.ones(1)), low, high)
    (k, _), _ = b.while_loop(_moves, _improved, QP_ITERATIONS, start, shared)
    L, free = b.trace(lambda u, *given: _held_newton(u, *given)[:2], k, *shared)
    return k, L, free


def _moves(u: SX, moved: SX, *given: SX) -> SX:
    return moved > QP_TOLERANCE


def _held_newton(u: SX, q: SX, Q: SX, damping: SX, low: SX, high: SX) -> tuple[SX, SX, SX, Callable[[SX], SX]]:
    """Return the Cholesky factor, the free controls (1, or 0 if held), the Newton step, and the objective of the box problem."""
    m = u.numel()
    A = ca.reshape(Q, m, m).T + damping * SX.eye(m)
    g = q + A @ u
    free = 1 - ca.logic_or(ca.logic_and(u <= low, g > 0), ca.logic_and(u >= high, g < 0))
    L = _cholesky(ca.diag(free) @ A @ ca.diag(free) + ca.diag(1 - free))
    return _packed(L), free, -free * _solve(L, free * g), lambda at: ca.dot(at, q) + ca.dot(at, A @ at) / 2


def _improved(u: SX, moved: SX, q: SX, Q: SX, damping: SX, low: SX, high: SX) -> tuple[SX, SX]:
    """Return the best point along the projected Newton step, and how far it is, relative to the box."""
    _, _, step, objective = _held_newton(u, q, Q, damping, low, high)
    best, least = u, objective(u)
    for part in QP_STEPS:
        at = _clipped(u + part * step, low, high)
        value = objective(at)
        best, least = ca.if_else(value < least, at, best), ca.fmin(value, least)
    return best, ca.mmax(ca.fabs(best - u) / (1 + ca.fmin(high - low, 1e300)))


def _clipped(u: SX, low: SX, high: SX) -> SX:
    return ca.fmin(ca.fmax(u, low), high)


def _gain_row(row: SX, L: SX, free: SX, Q: SX) -> tuple[SX, SX]:
    """Compute a row of K^T from a row of Qxu, and the row of S = K^T Quu / 2 + Qxu."""
    m = row.numel()
    gain = -free * _solve(_unpacked(L, m), free * row)
    return gain, ca.reshape(Q, m, m).T @ gain / 2 + row


def _value(  # noqa: PLR0913 -- the blocks of one linear-quadratic problem
    qx: SX, qu: SX, Quu: SX, Qxu: SX, Qxx: SX, k: SX, K_T: SX, SK: SX, change: SX
) -> tuple[SX, SX, SX]:
    """Compute gradient and Hessian of the value function before the step, and the predicted change of the cost."""
    Qk = Quu @ k
    v = qx + K_T @ (Qk + qu) + Qxu @ k
    half = Qxx / 2 + SK
    return v, half + half.T, change + ca.dot(k, qu + Qk / 2)
