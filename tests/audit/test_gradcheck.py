"""The gradient check itself: it accepts right derivatives and names wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.gradients import check_gradients

import costate as cs
from costate.audit.check import GradientReport
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


@pytest.mark.parametrize("distance", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11, -1e-8])
@pytest.mark.parametrize("forward_mode", [True, False])
def test_next_to_a_kink_smaller_steps_and_one_side_decide(distance: float, forward_mode: bool) -> None:
    """|x - a| is compared, and found right, however near the kink is; so is a derivative that is wrong by a thousandth."""
    options: dict[str, Any] = {"float32": False, "forward_mode": forward_mode, "second_order": False}
    for factor, verdict in ((1.0, "right"), (1.001, "wrong")):
        report = cs.gradcheck(lambda x, f=factor: Wrong.apply((x - 0.3 - distance).abs() + x**2, f, f), (X,), **options)
        assert report.verdict == verdict, str(report)
        assert not report.not_compared


def test_at_a_kink_any_slope_between_the_two_will_do() -> None:
    """The slopes are 0 and 2, and the derivative is once the factor."""
    here = (X[:1, :1],)
    options: dict[str, Any] = {"float32": False, "second_order": False}
    for factor, verdict in ((0.0, "right"), (0.5, "right"), (2.0, "right"), (2.001, "wrong"), (-0.001, "wrong")):
        at = cs.gradcheck(lambda x, f=factor: Wrong.apply((x - 0.3).abs() + x - 0.3, f, f), here, **options)
        assert at.verdict == verdict
        back = cs.gradcheck(
            lambda x, f=factor: Wrong.apply((x - 0.3).abs() + x - 0.3, f, 1.0), here, forward_mode=False, **options
        )
        assert back.verdict == verdict
    assert "on a kink" in str(cs.gradcheck(lambda x: (x - 0.3).abs() * (x >= 0.3), here, **options))
    second = cs.gradcheck(lambda x: (x - 0.3).abs(), here, float32=False)
    assert second.verdict == "not compared"  # the gradient jumps


def test_what_was_not_compared_has_a_verdict_of_its_own() -> None:
    """At a jump no differences settle, from either side; where there is nothing to differentiate, nothing was compared either."""
    jump = cs.gradcheck(lambda x: (x - 0.3).sign() + x, (X[:1, :1],), float32=False)
    assert jump.verdict == "not compared" and not jump.ok and not jump.failures
    assert "not compared: d output 0" in str(jump) and "from either side" in jump.not_compared[0].note
    empty = cs.gradcheck(lambda x: x[:0], (X,), float32=False)
    assert GradientReport().verdict == empty.verdict == "not compared"
    both = cs.gradcheck(lambda x: (Wrong.apply(x, 1.1, 1.1), (x - 0.3).sign()), (X[:1, :1],), float32=False)
    assert both.verdict == "wrong" and both.not_compared


def test_float32_next_to_a_switch_is_not_called_wrong() -> None:
    """0.3 rounds to 0.30000001 in float32; float64 switches within that distance, too."""
    report = cs.gradcheck(lambda x: (x - 0.30000001).abs(), (X,), second_order=False)
    assert report.verdict == "not compared" and {c.kind for c in report.not_compared} == {"float32"}


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
