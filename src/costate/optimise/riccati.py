"""The backward pass of iterative LQR, compiled: gains of a linear-quadratic problem with bounds on its controls.

    minimise  sum_t g_t . z_t + z_t . H_t z_t / 2  over  dx_{t+1} = J_t z_t + gap_t,   z_t = (dx_t, du_t),  low_t <= du_t <= high_t

The kernel is one reverse scan over time. It carries the value function of the steps that follow, its gradient v and Hessian V, and
the change of the cost that has been predicted so far. `_step_back` is its body, one step back in time:

1. `_shift`: move the value function across the gap.
2. `_model`: Q = H + J^T V J,  q = g + J^T (v + V gap), the cost of this step and all that follow, in blocks of x and u.
3. `_newton`, or `_box` with bounds: k = argmin over du in the box, with a Cholesky factor of Quu and the set of free controls.
4. `_gain_rows`: K = -Quu^-1 Qux on the controls that are free, and zero on those at a bound.
5. `_value`: V <- Qxx + S K + (S K)^T with S = K^T Quu / 2 + Qxu;   v <- qx + K^T (Quu k + qu) + Qxu k.

Products of matrices are loops over rows (`_product`), so that the code stays small for large robots. Matrices are stored row by row
in kernels and column by column in CasADi; `_matrix` and `_flat` convert.
"""

from __future__ import annotations

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
    zero = b.call(ca.Function("zero", [], [SX.zeros(1)]))[0]
    body = _step_back(n, m, bounded)
    (_, _, change), (k, K_T), _ = b.scan(body, DYNAMIC, [v, V, zero], sequences, [damping], reverse=True)
    b.output("k", k, (DYNAMIC, m))
    b.output("K_T", K_T, (DYNAMIC, n * m))
    b.output("change", change)
    return b.kernel()


def _step_back(n: int, m: int, bounded: bool) -> Program:
    """Build the body of the scan: (v, V, change, row of each sequence, damping) -> (v, V, change, k, K_T)."""
    z = n + m
    b = ProgramBuilder("step_back")
    v, V, change = b.input("v", n), b.input("V", n * n), b.input("change", 1)
    J, g, H, gap = b.input("J", n * z), b.input("g", z), b.input("H", z * z), b.input("gap", n)
    box = [b.input("low", m), b.input("high", m)] if bounded else []
    damping = b.input("damping", 1)
    (ahead, changed) = b.call(_shift(n), v, V, gap, change)
    J_T = _transposed(b, J, n, z)
    JVJ = _product(b, _product(b, J_T, V, z, n, n), J, z, n, z)
    qx, qu, Quu, Qxu, Qxx = b.call(_model(n, m), g, H, J, JVJ, ahead)
    if bounded:
        k, L, free = _box(b, m, qu, Quu, damping, *box)
    else:
        k, L, free = b.call(_newton(m), qu, Quu, damping)
    _, (K_T, S), _ = b.scan(_gain_rows(m), n, [], [Qxu], [L, free, Quu])
    SK = _product(b, S, _transposed(b, K_T, n, m), n, m, n)
    v1, V1, change1 = b.call(_value(n, m), qx, qu, Quu, Qxu, Qxx, k, K_T, SK, changed)
    for name, value in {"v": v1, "V": V1, "change": change1, "k": k, "K_T": K_T}.items():
        b.output(name, value)
    return b.program()


def _product(b: ProgramBuilder, left: Var, right: Var, rows: int, inner: int, columns: int) -> Var:
    """Multiply left @ right row by row; all matrices are row-major."""
    a, B = SX.sym("a", inner), SX.sym("B", inner * columns)
    row = ca.Function("row", [a, B], [ca.reshape(B, columns, inner) @ a])
    return b.scan(row, rows, [], [left], [right])[1][0]


def _transposed(b: ProgramBuilder, value: Var, rows: int, columns: int) -> Var:
    return b.call(_transpose(rows, columns), value)[0]


def _transpose(rows: int, columns: int) -> ca.Function:
    x = SX.sym("x", rows * columns)
    return ca.Function("transpose", [x], [ca.vec(_matrix(x, rows, columns))])


def _matrix(x: SX, rows: int, columns: int) -> SX:
    """Convert a row-major vector to a matrix, which CasADi stores column by column."""
    return ca.reshape(x, columns, rows).T


def _flat(x: SX) -> SX:
    return ca.densify(ca.vec(x.T))


def _shift(n: int) -> ca.Function:
    """Return the gradient of the value function after the gap, and the change of its value."""
    v, V, gap, change = SX.sym("v", n), SX.sym("V", n * n), SX.sym("gap", n), SX.sym("change")
    Vg = _matrix(V, n, n) @ gap
    return ca.Function("shift", [v, V, gap, change], [v + Vg, change + ca.dot(gap, v + Vg / 2)])


def _model(n: int, m: int) -> ca.Function:
    """Compute q = g + J^T v and Q = H + J^T V J, in blocks."""
    z = n + m
    g, H, J, JVJ, v = (SX.sym(name, size) for name, size in zip("gHJWv", (z, z * z, n * z, z * z, n), strict=True))
    q, Q = g + _matrix(J, n, z).T @ v, _matrix(H + JVJ, z, z)
    blocks = [q[:n], q[n:], _flat(Q[n:, n:]), _flat(Q[:n, n:]), _flat(Q[:n, :n])]
    return ca.Function("model", [g, H, J, JVJ, v], blocks)


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


def _newton(m: int) -> ca.Function:
    """Solve without bounds: (qu, Quu, damping) -> (k, Cholesky factor, all controls free)."""
    q, Q, damping = SX.sym("q", m), SX.sym("Q", m * m), SX.sym("damping")
    L = _cholesky(_matrix(Q, m, m) + damping * SX.eye(m))
    return ca.Function("newton", [q, Q, damping], [-_solve(L, q), _packed(L), SX.ones(m)])


def _box(b: ProgramBuilder, m: int, q: Var, Q: Var, damping: Var, low: Var, high: Var) -> tuple[Var, Var, Var]:
    """Solve with bounds by projected Newton (Bertsekas 1982).

    Controls at a bound that push against it are held; the others make a Newton step.
    """
    u, moved, s, S, d = SX.sym("u", m), SX.sym("moved"), SX.sym("q", m), SX.sym("Q", m * m), SX.sym("damping")
    lo, hi = SX.sym("low", m), SX.sym("high", m)
    A = _matrix(S, m, m) + d * SX.eye(m)
    g = s + A @ u
    free = 1 - ca.logic_or(ca.logic_and(u <= lo, g > 0), ca.logic_and(u >= hi, g < 0))
    masked = ca.diag(free) @ A @ ca.diag(free) + ca.diag(1 - free)
    L = _cholesky(masked)
    step = -free * _solve(L, free * g)

    def along(part: float) -> tuple[SX, SX]:
        at = ca.fmin(ca.fmax(u + part * step, lo), hi)
        return at, ca.dot(at, s) + ca.dot(at, A @ at) / 2

    best, least = u, ca.dot(u, s) + ca.dot(u, A @ u) / 2
    for part in QP_STEPS:
        at, value = along(part)
        best, least = ca.if_else(value < least, at, best), ca.fmin(value, least)
    distance = ca.mmax(ca.fabs(best - u) / (1 + ca.fmin(hi - lo, 1e300)))
    given = [s, S, d, lo, hi]
    shared = [q, Q, damping, low, high]
    go_on = ca.Function("go_on", [u, moved, *given], [moved > QP_TOLERANCE])
    improve = ca.Function("improve", [u, moved, *given], [best, distance])
    start = ca.Function("start", [lo, hi], [ca.fmin(ca.fmax(SX.zeros(m), lo), hi), SX.ones(1)])
    (k, _), _ = b.while_loop(go_on, improve, QP_ITERATIONS, b.call(start, low, high), shared)
    end = ca.Function("end", [u, *given], [_packed(L), free])
    L_end, free_end = b.call(end, k, *shared)
    return k, L_end, free_end


def _gain_rows(m: int) -> ca.Function:
    """Compute a row of K^T from a row of Qxu, and the row of S = K^T Quu / 2 + Qxu."""
    row, L, free, Q = SX.sym("row", m), SX.sym("L", m * (m + 1) // 2), SX.sym("free", m), SX.sym("Q", m * m)
    gain = -free * _solve(_unpacked(L, m), free * row)
    return ca.Function("gain", [row, L, free, Q], [gain, _matrix(Q, m, m) @ gain / 2 + row])


def _value(n: int, m: int) -> ca.Function:
    """Compute gradient and Hessian of the value function before the step, and the predicted change of the cost."""
    qx, qu, Q, X = SX.sym("qx", n), SX.sym("qu", m), SX.sym("Quu", m * m), SX.sym("Qxu", n * m)
    P, k, K_T, SK, change = SX.sym("Qxx", n * n), SX.sym("k", m), SX.sym("K_T", n * m), SX.sym("SK", n * n), SX.sym("c")
    Qk = _matrix(Q, m, m) @ k
    v = qx + _matrix(K_T, n, m) @ (Qk + qu) + _matrix(X, n, m) @ k
    half = _matrix(P / 2 + SK, n, n)
    return ca.Function(
        "value", [qx, qu, Q, X, P, k, K_T, SK, change], [v, _flat(half + half.T), change + ca.dot(k, qu + Qk / 2)]
    )
