"""Look-up in grids, against SciPy's interpolation, closed forms and differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.interpolate
import torch
from tests.gradients import check_gradients
from tests.kernel.programs import assert_as_interpreted, positional, uniform

from costate.kernel import Kernel, ProgramBuilder

KNOTS = np.array([0.0, 1.0, 1.5, 2.0, 4.0, 5.0, 5.5])


def look_up(grid: np.ndarray, axes: list, method: str) -> Kernel:
    b = ProgramBuilder("look-up")
    b.output("y", b.table(b.input("x", grid.ndim - 1), grid, axes, method))
    return b.kernel()


def test_linear_table() -> None:
    """Two dimensions, two channels, an even and an uneven axis; inside against SciPy, outside by extrapolation."""
    grid = np.random.default_rng(0).normal(size=(6, 7, 2))
    k = look_up(grid, [(-1.0, 0.5), KNOTS], "linear")
    scipy_table = scipy.interpolate.RegularGridInterpolator(
        (-1 + 0.5 * np.arange(6), KNOTS),
        grid,
        bounds_error=False,
        fill_value=None,  # type: ignore[arg-type]
    )
    x = torch.cat([uniform(-1.5, 2, 40, 1), uniform(-1, 7, 40, 1, seed=1)], -1)
    np.testing.assert_allclose(k(x=x).y.numpy(), scipy_table(x.numpy()), rtol=1e-12, atol=1e-13)
    assert_as_interpreted(k, (x,))
    check_gradients(positional(k), (x,), step=1e-4)


def test_cubic_table() -> None:
    """Catmull-Rom: on an even axis the cubic Hermite spline with central slopes; smooth; exact for quadratics."""
    values = np.random.default_rng(1).normal(size=9)
    k = look_up(values[:, None], [(2.0, 0.25)], "cubic")
    points = 2 + 0.25 * np.arange(9)
    slopes = (np.r_[values[1:], values[-1]] - np.r_[values[0], values[:-1]]) / 0.5
    spline = scipy.interpolate.CubicHermiteSpline(points, values, slopes)
    x = uniform(2, 4, 50, 1)
    np.testing.assert_allclose(k(x=x).y.numpy(), spline(x.numpy()), rtol=1e-12, atol=1e-13)
    assert_as_interpreted(k, (x,))
    check_gradients(positional(k), (x,), step=1e-4)

    at = torch.tensor([[2.5 - 1e-9], [2.5 + 1e-9]], dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(k(x=at).y.sum(), at)
    assert abs(float(slope[0] - slope[1])) < 1e-6  # continuous first derivative across a point

    a, c = np.meshgrid(np.arange(6.0), np.arange(5.0), indexing="ij")
    quadratic = look_up((a**2 - a * c + 3)[..., None], [(0.0, 1.0), (0.0, 1.0)], "cubic")
    inside = torch.cat([uniform(1, 4, 20, 1), uniform(1, 3, 20, 1, seed=3)], -1)
    exact = inside[:, :1] ** 2 - inside[:, :1] * inside[:, 1:] + 3
    torch.testing.assert_close(quadratic(x=inside).y, exact, rtol=1e-13, atol=1e-13)


def test_table_in_three_dimensions_and_its_hessian() -> None:
    """A trilinear grid of x y + 2 z: values, gradients and second derivatives are exact."""
    a, c, d = np.meshgrid(np.arange(3.0), np.arange(4.0), np.arange(3.0), indexing="ij")
    k = look_up((a * c + 2 * d)[..., None], [(0.0, 1.0)] * 3, "linear")
    x = torch.tensor([0.3, 2.4, 1.7], dtype=torch.float64)
    assert float(k(x=x).y) == pytest.approx(0.3 * 2.4 + 3.4, rel=1e-14)
    hessian = torch.func.hessian(lambda x: k(x=x).y[0])(x)
    expected = torch.zeros(3, 3, dtype=torch.float64)
    expected[0, 1] = expected[1, 0] = 1
    torch.testing.assert_close(hessian, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_table_shows_nan_and_survives_infinity(method: str) -> None:
    k = look_up(np.random.default_rng(0).normal(size=(4, 5, 1)), [(0.0, 1.0), (0.0, 1.0)], method)
    x = torch.tensor([[math.nan, 1.0], [1.0, math.nan], [math.inf, 1.0], [-math.inf, 1.0], [1e30, 1.0], [1.5, 2.5]])
    y = k(x=x.double()).y[:, 0]
    assert torch.isfinite(y).tolist()[-1]
    assert torch.isnan(y[:2]).all()
    assert not torch.isfinite(y[2:4]).any()


@pytest.mark.parametrize(
    ("shape", "axes", "method", "message"),
    [
        ((4, 1), [(0.0, 1.0)], "quintic", "unknown interpolation 'quintic': use 'linear' or 'cubic'"),
        ((4, 4, 1), [(0.0, 1.0)], "linear", "needs a point of 2 coordinates and 2 axes"),
        ((1, 1), [(0.0, 1.0)], "linear", "at least two points each"),
        ((3, 1), [np.array([0.0, 2.0, 1.0])], "linear", "axis 0 needs 3 increasing coordinates"),
        ((3, 1), [np.array([0.0, 2.0])], "linear", "axis 0 needs 3 increasing coordinates"),
    ],
)
def test_table_arguments_must_fit(shape: tuple[int, ...], axes: list, method: str, message: str) -> None:
    b = ProgramBuilder("wrong")
    with pytest.raises(ValueError, match=message):
        b.table(b.input("x", 1), np.zeros(shape), axes, method)
