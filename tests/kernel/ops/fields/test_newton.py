"""Newton's method over fields: against SciPy, on a smooth residual and on one with latent heat."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import torch
from scipy.optimize import brentq, root
from tests.gradients import check_gradients
from tests.kernel.ops.fields.test_krylov import grid_edges
from tests.kernel.programs import same_bits, uniform
from torch import Tensor

from costate.kernel import Kernel
from costate.kernel.fields import Field, FieldBuilder
from costate.kernel.ir.program import Var

CAPACITY, LATENT, MELTING = 700.0, 3e5, 1500.0
"""Heat capacity [J/(kg K)], latent heat [J/kg], temperature at which melting begins [K]."""


def diffusion(n: int, **options: float) -> Kernel:
    """A chain whose flux grows faster than the gradient, with a cubic sink: k (s + s^3) along bars, m y^3 + y = b at nodes."""
    f = FieldBuilder("diffusion")
    nodes, bars = f.entities("nodes", n), f.entities("bars", n - 1)
    ends = f.table(bars, nodes, grid_edges(n))
    k, b, m = f.field("k", bars), f.field("b", nodes), f.input("m", 1)

    def flux(y: ca.SX, k: ca.SX) -> ca.SX:
        s = y[0] - y[1]
        q = k * (s + s**3)
        return ca.vertcat(q, -q)

    def residual(g: FieldBuilder, y: Field, k: Field, b: Field, m: Var) -> Field:
        (flow,) = g.for_each(bars, flux, [y[ends], k], [ends])
        return g.for_each(nodes, lambda y, q, b, m: q + m * y**3 + y - b, [y, flow, b, m])[0]

    (start,) = f.for_each(nodes, lambda b: 0 * b, [b])
    found = f.solve(residual, start, [k, b, m], **options)  # type: ignore[arg-type]
    f.field_output("y", found.value)
    f.output("status", found.status)
    return f.kernel()


def diffusion_residual(y: np.ndarray, k: np.ndarray, b: np.ndarray, m: float) -> np.ndarray:
    s = y[:-1] - y[1:]
    q = k * (s + s**3)
    return np.append(q, 0) - np.insert(q, 0, 0) + m * y**3 + y - b


def given(n: int, batch: tuple[int, ...] = ()) -> tuple[Tensor, Tensor, Tensor]:
    k, b = torch.exp(uniform(-1, 1, *batch, n - 1, seed=1)), uniform(-9, 9, *batch, n, seed=2)
    return k, b, torch.tensor([0.7], dtype=torch.float64)


def test_nonlinear_diffusion() -> None:
    """The solution that SciPy's root finder has; derivatives of both orders."""
    n = 37
    k, b, m = given(n)
    kernel = diffusion(n, tolerance=1e-13)
    out = kernel(k=k, b=b, m=m)
    expected = root(diffusion_residual, np.zeros(n), (k.numpy(), b.numpy(), 0.7), tol=1e-13).x
    np.testing.assert_allclose(out.y.numpy(), expected, rtol=1e-11, atol=1e-12)
    converged, residual, iterations, steps = out.status.tolist()
    assert converged == 1 and residual < 1e-13 and 3 <= steps <= 20 and steps < iterations

    def packed(x: Tensor) -> Tensor:
        return kernel(k=x[: n - 1], b=x[n - 1 : -1], m=x[-1:]).y

    check_gradients(packed, (torch.cat([k, b, m]),), second_order=True)  # one input: fewer kernels to compile


def enthalpy(T: ca.SX, width: float) -> ca.SX:
    return CAPACITY * T + LATENT * ca.fmin(ca.fmax((T - MELTING) / width, 0), 1)


def melting(shape: tuple[int, ...], width: float, diagonal: bool = True) -> Kernel:
    """An implicit step of heat with latent heat: m (h(T) - h(old)) + k (differences of T) = q."""
    edges = grid_edges(*shape)
    f = FieldBuilder("melting")
    nodes, bars = f.entities("nodes", int(np.prod(shape))), f.entities("bars", len(edges))
    ends = f.table(bars, nodes, edges)
    old, q, p = f.field("old", nodes), f.field("q", nodes), f.input("p", 2)

    def residual(g: FieldBuilder, T: Field, old: Field, q: Field, p: Var) -> Field:
        (flow,) = g.for_each(bars, lambda T, p: p[1] * ca.vertcat(T[0] - T[1], T[1] - T[0]), [T[ends], p], [ends])

        def balance(T: ca.SX, old: ca.SX, q: ca.SX, flow: ca.SX, p: ca.SX) -> ca.SX:
            return p[0] * (enthalpy(T, width) - enthalpy(old, width)) + flow - q

        return g.for_each(nodes, balance, [T, old, q, flow, p])[0]

    def scale(g: FieldBuilder, T: Field, old: Field, q: Field, p: Var) -> Field:
        (flow,) = g.for_each(bars, lambda p: p[1] * ca.vertcat(1, 1), [p], [ends])

        def each(T: ca.SX, flow: ca.SX, p: ca.SX) -> ca.SX:
            share = (T - MELTING) / width
            return p[0] * (CAPACITY + ca.if_else(ca.logic_and(share > 0, share < 1), LATENT / width, 0)) + flow

        return g.for_each(nodes, each, [T, flow, p])[0]

    found = f.solve(residual, old, [old, q, p], scale if diagonal else None)
    f.field_output("T", found.value)
    f.output("status", found.status)
    return f.kernel()


def warmth(count: int, seed: int) -> Tensor:
    """Heat per node, which melts some of them partly, some wholly, some not at all [J], for one kilogram each."""
    return uniform(0, 1, count, seed=seed) * 2.5 * LATENT


def swept(old: np.ndarray, q: np.ndarray, m: float, k: float, width: float) -> np.ndarray:
    """The same step by sweeps along the chain: every node is brought into balance by bisection, until nothing moves."""

    def h(T: float) -> float:
        return CAPACITY * T + LATENT * min(max((T - MELTING) / width, 0), 1)

    T = old.copy()
    for _ in range(2000):
        before = T.copy()
        for i in range(len(T)):
            around = [T[j] for j in (i - 1, i + 1) if 0 <= j < len(T)]

            def balance(t: float, i: int = i, around: list[float] = around) -> float:
                return m * (h(t) - h(old[i])) + k * sum(t - u for u in around) - q[i]

            T[i] = brentq(balance, 0, 1e4, xtol=1e-11, rtol=1e-14)  # type: ignore[arg-type]
        if abs(T - before).max() < 1e-9:
            return T
    raise AssertionError("the sweeps did not settle")


@pytest.mark.parametrize("width", [50.0, 0.5])
def test_latent_heat(width: float) -> None:
    """Melting over 50 K, and almost at once: balances node by node find the same temperatures; so does a step back."""
    n = 24
    kernel = melting((n,), width)
    old, q, p = torch.full((n,), 1420.0).double(), warmth(n, 3), torch.tensor([1.0, 150.0]).double()
    out = kernel(old=old, q=q, p=p)
    assert out.status[0] == 1 and out.status[3] <= 30
    expected = swept(old.numpy(), q.numpy(), 1.0, 150.0, width)
    np.testing.assert_allclose(out.T.numpy(), expected, atol=1e-6)
    share = (out.T - MELTING) / width
    assert ((share > 0) & (share < 1)).sum() >= 5 and (share > 1).any()  # some melt, some have melted
    back = kernel(old=out.T, q=-q, p=p)
    np.testing.assert_allclose(back.T.numpy(), swept(out.T.numpy(), -q.numpy(), 1.0, 150.0, width), atol=1e-6)


def test_derivatives_of_melting() -> None:
    """Where no node is on a kink: derivatives by the old temperatures, the heat and the shared numbers."""
    kernel = melting((5, 5), 50.0)
    old, q, p = uniform(1400, 1440, 25, seed=1), warmth(25, 3), torch.tensor([1.0, 150.0]).double()

    def packed(x: Tensor) -> Tensor:
        return kernel(old=1000 * x[:25], q=LATENT * x[25:50], p=x[50:]).T / 1000

    check_gradients(packed, (torch.cat([old / 1000, q / LATENT, p]),), step=1e-3)


def test_many_steps_of_melting() -> None:
    """A plate that melts and freezes again: every step converges, in both number types, and heat is conserved."""
    shape, width = (24, 25), 5.0
    kernel = melting(shape, width)
    for dtype, balance in ((torch.float64, 1e-9), (torch.float32, 2e-4)):
        T, p = torch.full((600,), 300.0, dtype=dtype), torch.tensor([1.0, 400.0], dtype=dtype)
        spot = torch.zeros(shape, dtype=dtype)
        spot[8:14, 9:16] = 4e5
        for k in range(8):
            q = spot.ravel() if k < 4 else torch.full_like(T, -3e4)
            out = kernel(old=T, q=q, p=p)
            assert out.status[0] == 1, (k, out.status)
            h = [CAPACITY * t + LATENT * ((t - MELTING) / width).clamp(0, 1) for t in (T.double(), out.T.double())]
            assert abs(float((h[1] - h[0]).sum() - q.double().sum())) < balance * float(h[1].sum())
            T = out.T
            if k == 3:
                assert T.max() > MELTING + width


def test_batch_and_threads() -> None:
    """Problems of a batch take as many steps as each needs; one thread and two give the same bits."""
    n = 9000
    kernel = diffusion(n)
    k, b, m = given(n, (2,))
    b = b * torch.tensor([[1.0], [30.0]]).double()
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            x = [t.clone().requires_grad_() for t in (k, b, m)]
            out = kernel(k=x[0], b=x[1], m=x[2])
            out.y.square().sum().backward()
            found.append([*out, *(t.grad for t in x)])
    finally:
        torch.set_num_threads(before)
    assert all(same_bits(u, v) for u, v in zip(*found, strict=True))
    status = found[0][1]
    assert status[:, 0].all() and status[0, 3] != status[1, 3]
    for i in range(2):
        assert same_bits(kernel(k=k[i], b=b[i], m=m).y, found[0][0][i].detach())
        left = diffusion_residual(found[0][0][i].detach().numpy(), k[i].numpy(), b[i].numpy(), 0.7)
        assert np.linalg.norm(left) < 1e-9 * np.linalg.norm(b[i].numpy())


def test_failure_is_seen() -> None:
    """Too few steps, numbers that are not finite, a start that is the solution."""
    n = 37
    k, b, m = given(n)
    short = diffusion(n, steps=2)(k=k, b=b, m=m).status
    assert short[0] == 0 and short[1] > 1e-8 and short[3] == 2
    kernel = diffusion(n, tolerance=1e-13)
    assert kernel(k=k, b=b * torch.nan, m=m).status[0] != 1
    rest = kernel(k=k, b=0 * b, m=m)
    assert rest.status.tolist() == [1, 0, 0, 0] and not rest.y.any()


def test_steps_that_overflow() -> None:
    """exp(y) = b from far below: the first steps would leave the range of numbers, and are shortened."""
    f = FieldBuilder("exponential")
    nodes = f.entities("nodes", 21)
    b = f.field("b", nodes)
    (start,) = f.for_each(nodes, lambda b: 0 * b - 12, [b])
    found = f.solve(lambda g, y, b: g.for_each(nodes, lambda y, b: ca.exp(y) - b, [y, b])[0], start, [b])
    f.field_output("y", found.value)
    f.output("status", found.status)
    b = uniform(1, 2, 21, seed=1)
    out = f.kernel()(b=b)
    assert out.status[0] == 1
    torch.testing.assert_close(out.y, b.log(), rtol=1e-9, atol=1e-9)
