"""Matrix-free Gauss-Newton against closed forms, SciPy and dense Jacobians."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import curve_fit, least_squares

import costate as cs
from costate.optimise import GaussNewtonOptions, covariance, gauss_newton
from costate.optimise.gauss_newton import Problem
from costate.optimise.solution import Run
from costate.optimise.unknowns import Unknowns

F64 = torch.float64
PURE = GaussNewtonOptions(damping=0.0, cg_tolerance=1e-14, cg_iterations=200)


def rosenbrock(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"valley": 10 * (x[..., 1:] - x[..., :-1] ** 2), "floor": 1 - x[..., :-1]}


def test_linear_least_squares_in_one_step() -> None:
    A, b = torch.randn(30, 8, dtype=F64), torch.randn(30, dtype=F64)
    found = gauss_newton(lambda x: {"r": A @ x - b}, torch.zeros(8, dtype=F64), PURE)
    exact = torch.linalg.lstsq(A, b[:, None]).solution[:, 0]
    assert torch.allclose(found.x, exact, atol=1e-10)
    assert float(found.history[1].loss) == pytest.approx(float((A @ exact - b).square().sum() / 2), rel=1e-10)


def test_weights_are_of_squares() -> None:
    A, b = torch.randn(20, 4, dtype=F64), torch.randn(20, dtype=F64)
    each = torch.rand(10, dtype=F64)

    def residuals(x: torch.Tensor) -> dict[str, torch.Tensor]:
        r = A @ x - b
        return {"first": r[:10], "last": r[10:]}

    options = GaussNewtonOptions(damping=0.0, cg_tolerance=1e-14, weights={"first": 4.0, "last": each})
    found = gauss_newton(residuals, torch.zeros(4, dtype=F64), options)
    root = torch.cat([torch.full((10,), 2.0, dtype=F64), each.sqrt()])
    exact = torch.linalg.lstsq(root[:, None] * A, (root * b)[:, None]).solution[:, 0]
    assert torch.allclose(found.x, exact, atol=1e-10)
    assert float(found.extra["blocks"]["first"] + found.extra["blocks"]["last"]) == pytest.approx(float(found.loss))


def test_constant_damping_is_tikhonov() -> None:
    A, b = torch.randn(20, 4, dtype=F64), torch.randn(20, dtype=F64)
    options = GaussNewtonOptions(damping=0.7, adaptive=False, iterations=1, cg_tolerance=1e-14)
    found = gauss_newton(lambda x: {"r": A @ x - b}, torch.zeros(4, dtype=F64), options)
    exact = torch.linalg.solve(A.T @ A + 0.7 * torch.eye(4, dtype=F64), A.T @ b)
    assert torch.allclose(found.x, exact, atol=1e-10)


def test_rosenbrock_as_scipy_alone_and_side_by_side() -> None:
    starts = torch.tensor([-1.2, 1.0], dtype=F64) + 0.3 * torch.randn(
        8, 2, dtype=F64
    )  # in the plane there is one minimum
    found = gauss_newton(rosenbrock, starts, GaussNewtonOptions(batched=True))
    assert found.converged and found.loss.shape == (8,)
    for start, x in zip(starts, found.x, strict=True):
        theirs = least_squares(lambda p: torch.cat(list(rosenbrock(torch.tensor(p)).values())).numpy(), start.numpy())
        assert np.allclose(x, theirs.x, atol=1e-6)
    alone = gauss_newton(rosenbrock, starts[3])
    assert torch.allclose(alone.x, found.x[3], atol=1e-6)


def test_curve_fit_with_its_covariance() -> None:
    t = torch.linspace(0, 4, 60, dtype=F64)
    noise = 0.05 * torch.randn(60, dtype=F64, generator=torch.Generator().manual_seed(1))
    data = 2.0 * torch.exp(-0.8 * t) + 0.3 + noise

    def residuals(p: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"fit": p["scale"] * torch.exp(-p["rate"] * t) + p["offset"] - data}

    start = {k: torch.tensor(v, dtype=F64) for k, v in {"scale": 1.0, "rate": 0.3, "offset": 0.0}.items()}
    found = gauss_newton(residuals, start, GaussNewtonOptions(cg_tolerance=1e-10))
    best, spread = curve_fit(
        lambda t, a, k, c: a * np.exp(-k * t) + c,
        t.numpy(),
        data.numpy(),
        (1.0, 0.3, 0.0),
        jac=lambda t, a, k, c: np.stack([np.exp(-k * t), -a * t * np.exp(-k * t), np.ones_like(t)], 1),
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
    )
    assert np.allclose([found.x[k] for k in start], best, rtol=1e-6)
    assert np.allclose(covariance(residuals, found.x), spread, rtol=1e-5)


def test_weights_of_a_network() -> None:
    """Ten steps of Gauss-Newton reach a lower loss than a thousand of Adam."""
    torch.manual_seed(0)
    X = torch.linspace(-2, 2, 64, dtype=F64)[:, None]
    net = torch.nn.Sequential(torch.nn.Linear(1, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1)).double()
    start = [p.detach().clone() for p in net.parameters()]

    def fit(model: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"fit": model(X) - torch.sin(3 * X)}

    found = gauss_newton(fit, net, GaussNewtonOptions(iterations=30, cg_iterations=40))
    assert found.x is net
    assert float(fit(net)["fit"].detach().square().sum() / 2) == pytest.approx(float(found.loss))
    reached = float(found.loss)
    with torch.no_grad():
        for p, s in zip(net.parameters(), start, strict=True):
            p.copy_(s)
    adam = cs.optimise.gradient(
        lambda m: fit(m)["fit"].square().sum() / 2, net, cs.optimise.GradientOptions(lr=0.01, iterations=1000)
    )
    assert reached < float(adam.loss)


def test_residuals_are_evaluated_once_per_step_whatever_cg_needs() -> None:
    calls = 0
    A, b = torch.randn(60, 40, dtype=F64), torch.randn(60, dtype=F64)

    def residuals(x: torch.Tensor) -> dict[str, torch.Tensor]:
        nonlocal calls
        calls += 1
        return {"r": A @ torch.tanh(x) - b}

    options = GaussNewtonOptions(iterations=1, damping=1.0, cg_iterations=30, cg_tolerance=0.0)
    found = gauss_newton(residuals, torch.zeros(40, dtype=F64), options)
    assert found.history[1].detail["cg_iterations"] == 30
    assert calls == found.evaluations == 2  # at the start, and at the trial, which is linearised if it is taken
    assert found.extra["products"] == 2 * 30 + 2


def test_products_through_a_rollout() -> None:
    """J v and J^T u of a compiled time loop of dynamic length match torch.func's forward and reverse mode."""
    world = cs.World(robots=[cs.load_robot("pendulum1")], contact=None, dt=0.05)
    start = world.initial_state(1)

    def residuals(u: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"states": world.rollout(start, u[:, None])[1:], "effort": 0.1 * u}

    u = torch.randn(12, 1, dtype=F64)
    options = GaussNewtonOptions()
    problem = Problem(residuals, Unknowns(u), options, Run("", options))
    line = problem.linearize(u.reshape(1, -1))
    v, w = torch.randn(1, 12, dtype=F64), torch.randn_like(line.residual)

    def flat(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([r.reshape(1, -1) for r in residuals(x.reshape(12, 1)).values()], 1)

    assert torch.allclose(line.times(v), torch.func.jvp(flat, (u.reshape(1, -1),), (v,))[1], atol=1e-12)
    assert torch.allclose(line.transposed(w), torch.func.vjp(flat, u.reshape(1, -1))[1](w)[0], atol=1e-12)
    found = gauss_newton(lambda u: {"goal": 3 * (world.rollout(start, u[:, None])[-1] - 1), "effort": 0.1 * u}, 0 * u)
    assert found.converged


def test_errors() -> None:
    x = torch.zeros(3, dtype=F64)
    with pytest.raises(TypeError, match="dict of named tensors"):
        gauss_newton(lambda x: x, x)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="weights name 'gaol', but the residual blocks are goal"):
        gauss_newton(lambda x: {"goal": x}, x, GaussNewtonOptions(weights={"gaol": 2.0}))
    with pytest.raises(ValueError, match=r"residuals 'goal' have shape \(1,\); expected \(3, ...\)"):
        gauss_newton(lambda x: {"goal": x[:1]}, x, GaussNewtonOptions(batched=True))
    with pytest.raises(ValueError, match="lost their gradient"):
        gauss_newton(lambda x: {"goal": x.detach()}, x)
    with pytest.raises(ValueError, match="3 residuals do not determine"):
        covariance(lambda x: {"r": x}, x)
    with pytest.raises(TypeError, match=r"x0\['a'\] is a float"):
        gauss_newton(lambda x: {"r": x}, {"a": 1.0})
