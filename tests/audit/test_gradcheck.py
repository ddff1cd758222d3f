"""The gradient check itself: it accepts right derivatives and names wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.gradients import check_gradients, richardson

X = torch.tensor([[0.3, -1.2, 0.7], [1.1, 0.4, -0.5]], dtype=torch.float64)


class _Wrong(torch.autograd.Function):
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


def test_right_derivatives_pass() -> None:
    report = check_gradients(
        lambda x, y: (x.sin() * y, (x * y).sum(-1)), (X, X[0]), reference=lambda x, y: (x.sin() * y, x @ y)
    )
    assert 0 < report.finite_difference < 1e-9
    assert report.duality < 1e-14
    assert 1e-10 < report.float32 < 1e-6


@pytest.mark.parametrize(
    ("backward", "forward", "message"),
    [
        (1.0 + 1e-9, 1.0, "J\\^T u"),
        (1.0, 1.0 + 1e-6, "finite differences"),
        (1.0 + 1e-6, 1.0 + 1e-6, "finite differences"),
    ],
)
def test_wrong_derivatives_are_named(backward: float, forward: float, message: str) -> None:
    check_gradients(lambda x: _Wrong.apply(x, 1.0, 1.0), (X,))
    with pytest.raises(AssertionError, match=message):
        check_gradients(lambda x: _Wrong.apply(x, backward, forward), (X,))


def test_backward_alone_is_held_against_finite_differences() -> None:
    with pytest.raises(AssertionError, match="J\\^T u"):
        check_gradients(lambda x: _Wrong.apply(x, 1.001, 1.0), (X,), forward_mode=False)


def test_a_wrong_value_is_named() -> None:
    with pytest.raises(AssertionError, match="output 0 against reference"):
        check_gradients(torch.sin, (X,), reference=lambda x: x.sin() * (1 + 1e-9))


def test_wrong_precision_is_named() -> None:
    with pytest.raises(AssertionError, match=r"float64 for float32 inputs"):
        check_gradients(lambda x: x.double().sin(), (X,))


def test_a_kink_is_not_mistaken_for_a_wrong_derivative() -> None:
    with pytest.raises(AssertionError, match="not smooth"):
        check_gradients(lambda x: (x - 0.300001).abs(), (X,))


def test_extrapolated_differences_beat_plain_ones() -> None:
    x = torch.tensor([0.3], dtype=torch.float64)
    (found,), (trust,) = richardson(lambda t: [torch.exp(torch.sin(3 * (x + t)))], 2e-2)
    exact = 3 * torch.cos(3 * x) * torch.exp(torch.sin(3 * x))
    assert abs(float(found - exact)) < 1e-11
    assert trust < 1e-9
