"""Gradient descent against torch's and SciPy's own, and search without gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from costate.optimise import GradientOptions, Record, SearchOptions, gradient, search

F64 = torch.float64


def rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)


START = torch.tensor([-1.2, 1.0, -1.2, 1.0], dtype=F64)


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        (GradientOptions(lr=0.02, iterations=60), lambda p: torch.optim.Adam(p, lr=0.02)),
        (
            GradientOptions(method="sgd", lr=1e-4, momentum=0.8, iterations=60),
            lambda p: torch.optim.SGD(p, lr=1e-4, momentum=0.8),
        ),
    ],
    ids=["adam", "sgd"],
)
def test_first_order_methods_are_those_of_torch(options: GradientOptions, theirs) -> None:
    x = START.clone().requires_grad_()
    optimizer = theirs([x])
    losses = [float(rosenbrock(x.detach()))]
    for _ in range(60):
        optimizer.zero_grad()
        rosenbrock(x).backward()
        optimizer.step()
        losses.append(float(rosenbrock(x.detach())))
    found = gradient(rosenbrock, START, options)
    assert np.allclose(found.losses(), losses, rtol=1e-9)
    assert float(found.loss) == min(found.losses()) and found.evaluations == 61


def test_lbfgs_finds_what_scipy_finds_for_each_problem() -> None:
    starts = START + 0.3 * torch.randn(8, 4, dtype=F64, generator=torch.Generator().manual_seed(0))
    found = gradient(rosenbrock, starts, GradientOptions(method="lbfgs", iterations=300, tolerance=1e-8))
    assert found.converged and found.loss.shape == (8,)
    for start, x in zip(starts, found.x, strict=True):
        # Rosenbrock in four dimensions has two minima: the same one must be a minimum for SciPy, too.
        polished = minimize(lambda p: float(rosenbrock(torch.tensor(p))), x.numpy(), method="Nelder-Mead", tol=1e-10)
        assert np.allclose(polished.x, x, atol=1e-4)
        alone = gradient(rosenbrock, start, GradientOptions(method="lbfgs", iterations=300, tolerance=1e-8))
        assert torch.allclose(alone.x, x, atol=1e-6)


def test_lbfgs_needs_few_steps_for_a_quadratic() -> None:
    H = torch.diag(torch.logspace(0, 2, 10, dtype=F64))
    found = gradient(
        lambda x: x @ H @ x / 2, torch.ones(10, dtype=F64), GradientOptions(method="lbfgs", tolerance=1e-9)
    )
    assert found.converged and found.iterations < 60 and float(found.loss) < 1e-17


def test_bounds_by_projection() -> None:
    aim = torch.tensor([2.0, -3.0, 0.5], dtype=F64)
    options = GradientOptions(lr=0.05, iterations=500, bounds=(-1.0, torch.tensor([1.0, 1.0, 0.2], dtype=F64)))
    found = gradient(lambda x: (x - aim).square().sum(), torch.zeros(3, dtype=F64), options)
    assert torch.allclose(found.x, torch.tensor([1.0, -1.0, 0.2], dtype=F64), atol=1e-6)


def test_solved_problems_rest_and_broken_ones_do_not_spread() -> None:
    """Of three problems, one becomes NaN when it moves and one is solved and stays; the third still improves."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        broken = torch.tensor([0.0, 0.0, 1.0], dtype=F64) * torch.where(x[:, 0] == 1, 0.0, float("nan"))
        return torch.where(torch.arange(3) == 2, x[:, 0].square() + broken, x[:, 0].square())

    x0 = torch.tensor([[1e-4], [1.0], [1.0]], dtype=F64)
    found = gradient(loss, x0, GradientOptions(method="sgd", lr=0.1, iterations=60, target=1e-7))
    assert found.solved.tolist() == [True, True, False]
    assert found.x[0] == x0[0] and found.x[2] == 1 and not found.converged


def test_modules_dicts_and_lists() -> None:
    layer = torch.nn.Linear(3, 1).double()
    X, y = torch.randn(20, 3, dtype=F64), torch.randn(20, 1, dtype=F64)
    found = gradient(lambda m: (m(X) - y).square().mean(), layer, GradientOptions(method="lbfgs", tolerance=1e-10))
    exact = torch.linalg.lstsq(torch.cat([X, torch.ones(20, 1, dtype=F64)], 1), y).solution[:, 0]
    assert found.x is layer
    assert torch.allclose(torch.cat([layer.weight[0], layer.bias]), exact, atol=1e-6)
    start = {"a": torch.zeros(2, dtype=F64), "b": [torch.zeros((), dtype=F64)]}
    both = gradient(
        lambda p: (p["a"] - 1).square().sum() + (p["b"][0] + 2) ** 2,
        start,
        GradientOptions(method="lbfgs", tolerance=1e-9),
    )
    assert torch.allclose(both.x["a"], torch.ones(2, dtype=F64)) and float(both.x["b"][0]) == pytest.approx(-2)


def test_history_callback_and_time_limit() -> None:
    seen: list[Record] = []

    def watch(record: Record) -> bool:
        seen.append(record)
        return record.iteration == 5

    found = gradient(rosenbrock, START, GradientOptions(callback=watch))
    assert found.iterations == 5 and seen == found.history and "callback" in found.reason
    assert [r.evaluations for r in seen] == list(range(1, 7))
    assert sorted(r.seconds for r in seen) == [r.seconds for r in seen]
    assert "time limit" in gradient(rosenbrock, START, GradientOptions(time_limit=0.0)).reason
    assert "target" in gradient(rosenbrock, START, GradientOptions(target=1e9)).reason


def test_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    gradient(rosenbrock, START, GradientOptions(iterations=3, progress=True))
    assert "adam" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["cma", "random"])
def test_search_finds_the_bottom_of_a_bowl(method: str) -> None:
    aim = torch.tensor([0.5, -1.0, 2.0], dtype=F64)
    options = SearchOptions(method=method, iterations=400, target=1e-6, batched=True)
    found = search(lambda x: (x - aim).square().sum(-1), torch.zeros(3, dtype=F64), options)
    assert found.converged and torch.allclose(found.x, aim, atol=2e-3)
    one = search(
        lambda x: (x - aim).square().sum(),
        torch.zeros(3, dtype=F64),
        SearchOptions(method=method, iterations=400, target=1e-6),
    )
    assert torch.equal(one.x, found.x) and one.evaluations == found.evaluations
    least = [float(r.loss) for r in found.history]
    assert least == sorted(least, reverse=True)


def test_search_keeps_bounds_and_forgives_nan() -> None:
    def loss(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x[:, 0] > 0.5, float("nan"), (x - 2).square().sum(-1))

    options = SearchOptions(iterations=60, batched=True, bounds=(-1.0, 1.0), seed=3)
    found = search(loss, torch.zeros(2, dtype=F64), options)
    assert float(found.x[0]) == pytest.approx(0.5, abs=0.05) and float(found.x[1]) == pytest.approx(1.0, abs=0.01)


def test_errors() -> None:
    with pytest.raises(ValueError, match="unknown method 'newton'"):
        gradient(rosenbrock, START, GradientOptions(method="newton"))
    with pytest.raises(ValueError, match=r"the loss is \(4, 1\); expected \(\), or \(B,\)"):
        gradient(lambda x: x[:, None], START)
    with pytest.raises(ValueError, match="there are 3 problems"):
        gradient(lambda x: x[:3], START)
    with pytest.raises(ValueError, match="lost its gradient"):
        gradient(lambda x: rosenbrock(x.detach()), START)
    with pytest.raises(ValueError, match="L-BFGS has no bounds"):
        gradient(rosenbrock, START, GradientOptions(method="lbfgs", bounds=(0, 1)))
    with pytest.raises(TypeError, match="x0 is a float"):
        gradient(rosenbrock, 1.0)
    with pytest.raises(ValueError, match="one problem at a time"):
        search(lambda x: x, START)
    with pytest.raises(ValueError, match="use batched=False"):
        search(lambda m: m.weight.sum(), torch.nn.Linear(2, 2), SearchOptions(batched=True))
    with pytest.raises(ValueError, match="at least two unknowns"):
        search(lambda x: x.sum(), torch.zeros(1))
