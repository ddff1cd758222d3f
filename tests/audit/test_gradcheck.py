"""The gradient check itself: it accepts right derivatives and names wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.audit.finite_difference import richardson
from costate.audit.rounding import terms

X = torch.tensor([[0.3, -1.2, 0.7], [1.1, 0.4, -0.5]], dtype=torch.float64)


class Wrong(torch.autograd.Function):
    """sin(x), with a factor on the backward and one on the forward derivative."""

    @staticmethod
    def forward(x: torch.Tensor, backward: float, forward: float) -> torch.Tensor:  # type: ignore[override]
        return x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
        ctx.factors = inputs[1:]

    @staticmethod
    def backward(ctx: Any, bar: torch.Tensor) -> Any:  # type: ignore[override]
        return ctx.factors[0] * bar * ctx.saved_tensors[0].cos(), None, None

    @staticmethod
    def jvp(ctx: Any, dot: torch.Tensor, *_: Any) -> Any:  # type: ignore[override]
        return ctx.factors[1] * dot * ctx.saved_tensors[0].cos()


class Detached(torch.autograd.Function):
    """sin(x) whose gradient forgets where it came from."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        ctx.slope = x.detach().cos()
        return x.sin()

    @staticmethod
    def backward(ctx: Any, bar: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return bar * ctx.slope


def test_right_derivatives_pass() -> None:
    report = check_gradients(
        lambda x, y: (x.sin() * y, (x * y).sum(-1)), (X, X[0]), reference=lambda x, y: (x.sin() * y, x @ y)
    )
    worst = {kind: report.worst(kind) or 0.0 for kind in ("finite_difference", "duality", "float32")}
    assert 0 < worst["finite_difference"] < 1e-9
    assert worst["duality"] < 1e-14
    assert 1e-10 < worst["float32"] < 1e-6


@pytest.mark.parametrize(
    ("backward", "forward", "message"),
    [
        (1.0 + 1e-9, 1.0, "J\\^T u"),
        (1.0, 1.0 + 1e-6, "finite differences"),
        (1.0 + 1e-6, 1.0 + 1e-6, "finite differences"),
    ],
)
def test_wrong_derivatives_are_named(backward: float, forward: float, message: str) -> None:
    check_gradients(lambda x: Wrong.apply(x, 1.0, 1.0), (X,))
    with pytest.raises(AssertionError, match=message):
        check_gradients(lambda x: Wrong.apply(x, backward, forward), (X,))


def test_backward_alone_is_held_against_finite_differences() -> None:
    with pytest.raises(AssertionError, match="J\\^T u"):
        check_gradients(lambda x: Wrong.apply(x, 1.001, 1.0), (X,), forward_mode=False)


def test_a_wrong_value_is_named() -> None:
    with pytest.raises(AssertionError, match="output 0 against reference"):
        check_gradients(torch.sin, (X,), reference=lambda x: x.sin() * (1 + 1e-9))


def test_wrong_precision_is_named() -> None:
    with pytest.raises(AssertionError, match=r"float64 for float32 inputs"):
        check_gradients(lambda x: x.double().sin(), (X,))


def test_a_kink_is_not_mistaken_for_a_wrong_derivative() -> None:
    """Next to the point, further away (where a smaller step helps), and right at it, where any slope between the two will do."""
    with pytest.raises(AssertionError, match="not smooth"):
        check_gradients(lambda x: (x - 0.30000001).abs(), (X,))
    check_gradients(lambda x: (x - 0.301).abs(), (X,), float32=False)
    here = (X[:1, :1],)
    at = cs.gradcheck(lambda x: Wrong.apply((x - 0.3).clamp(min=0.0), 1.0, 1.0), here, float32=False)
    assert at.ok and "on a kink" in at.switches[0].note
    assert not cs.gradcheck(lambda x: Wrong.apply((x - 0.3).clamp(min=0.0), 1.5, 1.5), here, float32=False).ok


def test_second_derivatives() -> None:
    """x^3 |x| is right in both orders; a gradient that is cut off from its input is right in the first only."""
    assert cs.gradcheck(lambda x, y: (x**3 * x.abs() * y).sum(-1), (X, X[0])).ok
    report = cs.gradcheck(lambda x: Detached.apply(x), (X,), forward_mode=False, float32=False)
    assert {c.kind for c in report.failures} == {"second_order"}


def test_zero_gradients_are_named() -> None:
    report = cs.gradcheck(lambda x, y: x.sin() + y.clamp(-0.1, 0.1), (X, 3 * X.sign()), names=("angle", "torque"))
    assert report.ok and list(report.zeros) == ["torque"]
    assert "gradient of torque is exactly zero" in str(report) and "smooth bound" in report.zeros["torque"]


def test_a_cut_graph_is_wrong() -> None:
    with pytest.raises(AssertionError, match="no output depends"):
        check_gradients(lambda x: x.detach().sin(), (X,), float32=False)


def test_extrapolated_differences_beat_plain_ones() -> None:
    x = torch.tensor([0.3], dtype=torch.float64)
    (found,), (trust,) = richardson(lambda t: [torch.exp(torch.sin(3 * (x + t)))], 2e-2)
    exact = 3 * torch.cos(3 * x) * torch.exp(torch.sin(3 * x))
    assert abs(float(found - exact)) < 1e-11
    assert trust < 1e-9


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_the_size_of_terms_that_cancel(size: float, dtype: torch.dtype) -> None:
    """(x + s) - s was summed from s, whatever x is; also next to a jump."""
    x = torch.tensor([0.3, 0.7], dtype=dtype)
    (plain,) = terms(lambda t: [(x + t + size) - size], dtype)
    (jump,) = terms(lambda t: [(x + t + size) - size + (x + t > x)], dtype)
    assert 0.03 * size < plain < 3 * size
    assert jump < 3 * (size + 1)


def test_gradients_that_cancel_are_judged_by_what_they_are_summed_from() -> None:
    """s (sin^2 + cos^2) has no gradient; of its terms single precision leaves 1e-7 s, which is right, and 1e-2 s is not."""
    check_gradients(lambda x: 1e4 * (x.sin() ** 2 + x.cos() ** 2 + 1e-6 * x), (X,))
    with pytest.raises(AssertionError, match="in float32"):
        check_gradients(lambda x: x * (1.01 if x.dtype == torch.float32 else 1.0), (X,))
