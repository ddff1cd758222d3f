"""Programs and kernels that several tests share, each with the same computation in NumPy or torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np
import torch
from torch import Tensor

from costate.kernel import Kernel, ProgramBuilder
from costate.kernel.ir.program import Program

GRAVITY = 9.81


def positional(kernel: Kernel) -> Callable[..., tuple[Tensor, ...]]:
    """The kernel as a function of tensors in the order of its inputs."""
    return lambda *tensors: tuple(kernel.apply(tensors))


def interpreted(kernel: Kernel, inputs: Sequence[Tensor]) -> list[Tensor]:
    """What `Program.evaluate`, the definition, makes of inputs (batch, *shape)."""
    batch = inputs[0].shape[0]
    columns = [x.detach().double().reshape(batch, -1).numpy().T for x in inputs]
    results = kernel.program.evaluate(*columns)
    return [
        torch.from_numpy(np.array(np.broadcast_to(r, (r.shape[0], batch)).T)).reshape(batch, *s.shape)
        for r, s in zip(results, kernel.signature.outputs, strict=True)
    ]


def assert_as_interpreted(kernel: Kernel, inputs: Sequence[Tensor], tolerance: float = 1e-13) -> None:
    """Compiled and interpreted results agree, relative to the largest entry, up to rounding (compiled code fuses)."""
    found = kernel.apply(list(inputs))
    for spec, a, b in zip(kernel.signature.outputs, found, interpreted(kernel, inputs), strict=True):
        assert a.shape == b.shape, spec
        error = (a - b).abs().max() / b.abs().max().clamp(min=1e-300)
        assert float(error) <= tolerance, f"{spec}: {float(error)}"


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal shapes, types and bytes (so -0 is not 0, and NaN is NaN)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.detach().contiguous().numpy().tobytes() == b.detach().contiguous().numpy().tobytes()


# --- a small straight-line kernel -----------------------------------------------------------------------------------


def spring() -> Kernel:
    """Vectors, a matrix, a shared-looking parameter and a selection; smooth where |x_0| is not near 1."""
    x, p, M = ca.SX.sym("x", 3), ca.SX.sym("p", 2), ca.SX.sym("M", 2, 3)
    f = ca.vertcat(
        ca.sin(x[0]) * p[0], ca.exp(-(x[1] ** 2)) + p[1] * x[2], ca.if_else(x[0] > 1, x[0] * x[1], ca.tanh(x[2]))
    )
    return Kernel("spring", {"x": x, "p": p, "M": M}, {"f": f, "e": M @ x, "G": M * p[0] + x[0]})


def spring_torch(x: Tensor, p: Tensor, M: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    batch = torch.broadcast_shapes(x.shape[:-1], p.shape[:-1], M.shape[:-2])
    x, p, M = x.expand(*batch, 3), p.expand(*batch, 2), M.expand(*batch, 2, 3)
    f = torch.stack(
        [
            x[..., 0].sin() * p[..., 0],
            torch.exp(-(x[..., 1] ** 2)) + p[..., 1] * x[..., 2],
            torch.where(x[..., 0] > 1, x[..., 0] * x[..., 1], x[..., 2].tanh()),
        ],
        -1,
    )
    return f, (M @ x[..., None])[..., 0], M * p[..., 0, None, None] + x[..., 0, None, None]


def spring_inputs(*batch: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Every input batched."""
    rng = np.random.default_rng(seed)
    shapes = ((3,), (2,), (2, 3))
    x, p, M = (torch.from_numpy(rng.uniform(-0.9, 0.9, (*batch, *s))) for s in shapes)
    x[..., 0] += (torch.from_numpy(rng.uniform(size=batch)) > 0.5) * 2.0  # away from the switch at 1
    return x, p, M


# --- a double pendulum ----------------------------------------------------------------------------------------------


def pendulum_step(x: Any, dt: float, lib: Any = ca) -> Any:
    """Semi-implicit Euler step of two unit masses on unit rods; x = (angles, rates). `lib`: casadi or numpy."""
    a, b, va, vb = x[0], x[1], x[2], x[3]
    c, s = lib.cos(a - b), lib.sin(a - b)
    r0 = -vb * vb * s - 2 * GRAVITY * lib.sin(a)
    r1 = va * va * s - GRAVITY * lib.sin(b)
    det = 2 - c * c
    va, vb = va + dt * (r0 - c * r1) / det, vb + dt * (2 * r1 - c * r0) / det
    rows = [a + dt * va, b + dt * vb, va, vb]
    return ca.vertcat(*rows) if lib is ca else lib.stack(rows)


def pendulum(steps: int, dt: float, keep: bool = True) -> Kernel:
    """final (4), and with keep states (steps + 1, 4)."""
    x = ca.SX.sym("x", 4)
    b = ProgramBuilder("double pendulum")
    (final,), _, states = b.scan(ca.Function("step", [x], [pendulum_step(x, dt)]), steps, b.input("x", 4), keep=keep)
    b.output("final", final)
    if keep:
        b.output("states", states[0], (steps + 1, 4))
    return b.kernel()


# --- Gauss-Seidel ---------------------------------------------------------------------------------------------------


def gauss_seidel_sweep(x: ca.SX, A: ca.SX, rhs: ca.SX) -> ca.SX:
    """One sweep; A is row-major, (n * n)."""
    n = x.numel()
    x = ca.SX(x)
    for i in range(n):
        off = sum(A[i * n + j] * x[j] for j in range(n) if j != i)
        x[i] = (rhs[i] - off) / A[i * n + i]
    return x


def gauss_seidel(n: int, sweeps: int) -> Program:
    """(A, rhs) -> x, from zero."""
    x, A, rhs = ca.SX.sym("x", n), ca.SX.sym("A", n * n), ca.SX.sym("rhs", n)
    b = ProgramBuilder("solver")
    matrix, right = b.input("A", (n, n)), b.input("rhs", n)
    (zero,) = b.call(ca.Function("zero", [], [ca.densify(ca.SX.zeros(n))]))
    body = ca.Function("sweep", [x, A, rhs], [gauss_seidel_sweep(x, A, rhs)])
    (solution,), _, _ = b.scan(body, sweeps, zero, [], [matrix, right])
    b.output("x", solution)
    return b.program()


# --- all kinds of stages at once ------------------------------------------------------------------------------------

GRID = np.random.default_rng(4).normal(size=(5, 6, 1))
TABLE_AXES = [(-2.0, 1.0), np.array([-3.0, -1.5, -0.5, 0.5, 1.0, 3.0])]
PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
STEPS = 5


def every_kind(check_finite: bool = False) -> Kernel:
    """Straight-line code, map, table, cond and sweeps (a scan) inside time steps (a scan), then while and implicit."""
    x, u, k, h = ca.SX.sym("x", 4), ca.SX.sym("u", 2), ca.SX.sym("k", 1), ca.SX.sym("h", 1)
    pair, force = ca.SX.sym("pair", 2), ca.SX.sym("force", 4)

    sweep = ProgramBuilder("sweep")  # the inner solver: y <- (4 x + shift(y)) / 6
    y0 = sweep.input("y", 4)
    inner = ca.Function("inner", [force, x], [(4 * x + ca.vertcat(force[1:], force[0])) / 6])
    (solved,), _, _ = sweep.scan(inner, 3, y0, [], [y0])
    sweep.output("y", solved)

    step = ProgramBuilder("step")
    state, control, stiffness = step.input("x", 4), step.input("u", 2), step.input("k", 1)
    spring_force = ca.Function("force", [pair, k], [k * ca.vertcat(pair[1] - pair[0], ca.sin(pair[0] - pair[1]))])
    every = np.zeros((len(PAIRS), 1), int)
    (forces,) = step.map(spring_force, [(state, PAIRS), (stiffness, every)], [(4, PAIRS)])
    (smooth,) = step.call(sweep.program(), forces)
    (point,) = step.call(ca.Function("point", [x, u], [ca.vertcat(x[0] + u[0], x[1])]), state, control)
    height = step.table(point, GRID, TABLE_AXES, "cubic")
    (condition,) = step.call(ca.Function("hit", [h], [h > 0]), height)
    then = ca.Function("then", [x, h], [x * ca.exp(-h)])
    otherwise = ca.Function("otherwise", [x, h], [x + 0.1 * h])
    (bounced,) = step.cond(condition, then, otherwise, state, height)
    new = ca.Function("new", [x, force, u], [x + 0.1 * force + 0.05 * ca.vertcat(u, -u), ca.sumsqr(force)])
    after, cost = step.call(new, bounced, smooth, control)
    step.output("x", after)
    step.output("cost", cost)

    b = ProgramBuilder("every kind")
    X, U, K = b.input("x", 4), b.input("u", (STEPS, 2)), b.input("k", 1)
    (final,), (costs,), (states,) = b.scan(step.program(), STEPS, X, [U], [K], keep=True)
    norm = ca.Function("norm", [x, k], [ca.sumsqr(x) > 0.1 * k])
    (small,), count = b.while_loop(norm, ca.Function("halve", [x, k], [x * (0.5 + 0.01 * k)]), 20, final, [K])
    root = _square_root()
    positive = b.call(ca.Function("positive", [x], [1 + x**2]), small)[0]
    rooted = b.implicit(root, lambda y, a: y * y - a, positive)
    b.output("states", states, (STEPS + 1, 4))
    b.output("costs", costs, (STEPS, 1))
    b.output("rooted", rooted)
    b.output("count", count)
    return b.kernel(check_finite)


def _square_root() -> Program:
    """Ten Newton steps from (1 + a) / 2."""
    y, a = ca.SX.sym("y", 4), ca.SX.sym("a", 4)
    b = ProgramBuilder("root")
    A = b.input("a", 4)
    (start,) = b.call(ca.Function("start", [a], [(1 + a) / 2]), A)
    (root,), _, _ = b.scan(ca.Function("newton", [y, a], [(y + a / y) / 2]), 10, start, [], [A])
    b.output("y", root)
    return b.program()


def every_kind_inputs(batch: int, seed: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    shapes = ((4,), (STEPS, 2), (1,))
    x, u, k = (torch.from_numpy(rng.uniform(-1, 1, (batch, *s))) for s in shapes)
    return x, u, 1 + 0.5 * k


def every_kind_torch(x: Tensor, u: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The same, sample by sample, in torch."""
    rows = [_one_sample(x[i], u[i], k[i]) for i in range(len(x))]
    states, costs, rooted, count = (torch.stack(list(r)) for r in zip(*rows, strict=True))
    return states, costs, rooted, count


def _one_sample(x: Tensor, u: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    states, costs = [x], []
    for t in range(STEPS):
        f = torch.zeros_like(x)
        for i, j in PAIRS:
            f[i] = f[i] + (k * (x[j] - x[i]))[0]
            f[j] = f[j] + (k * torch.sin(x[i] - x[j]))[0]
        y, start = f, f
        for _ in range(3):
            y = (4 * start + torch.roll(y, -1)) / 6
        h = catmull_rom_2d(torch.stack([x[0] + u[t, 0], x[1]]))
        x = x * torch.exp(-h) if h > 0 else x + 0.1 * h
        x = x + 0.1 * y + 0.05 * torch.cat([u[t], -u[t]])
        states.append(x)
        costs.append((y * y).sum()[None])
    n = 0
    while float((x * x).sum()) > 0.1 * float(k[0]):
        x, n = x * (0.5 + 0.01 * k), n + 1
    return torch.stack(states), torch.stack(costs), torch.sqrt(1 + x**2), torch.tensor([float(n)], dtype=x.dtype)


def catmull_rom_2d(point: Tensor) -> Tensor:
    """Look-up in GRID: cubic Hermite segments along the second axis, then along the first, in cell coordinates."""
    first = point[0] - TABLE_AXES[0][0]
    knots = torch.from_numpy(np.asarray(TABLE_AXES[1]))
    j = int((point[1].detach() >= knots[1:-1]).sum())
    second = j + (point[1] - knots[j]) / (knots[j + 1] - knots[j])
    rows = torch.stack([_hermite(torch.from_numpy(GRID[i, :, 0]), second) for i in range(GRID.shape[0])])
    return _hermite(rows, first)


def _hermite(values: Tensor, u: Tensor) -> Tensor:
    """Cubic with slopes (v[i+1] - v[i-1]) / 2 at the points, edge points repeated."""
    n = len(values)
    i = min(max(int(torch.floor(u.detach())), 0), n - 2)
    before, a, b, after = values[max(i - 1, 0)], values[i], values[i + 1], values[min(i + 2, n - 1)]
    m0, m1, t = (b - before) / 2, (after - a) / 2, u - i
    return (2 * t**3 - 3 * t**2 + 1) * a + (t**3 - 2 * t**2 + t) * m0 + (3 * t**2 - 2 * t**3) * b + (t**3 - t**2) * m1


def uniform(low: float, high: float, *shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).uniform(low, high, shape))
