"""Gradients of liquids with a free surface, against differences and forward mode; bits and errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from costate.continuum.liquid.model import LiquidModel
from costate.continuum.mpm import fill


@pytest.mark.parametrize(("dim", "steps"), [(2, 60), pytest.param(3, 20, marks=pytest.mark.study)])
def test_slope_by_positions_velocities_and_gravity(dim: int, steps: int) -> None:
    """A column that is let go: the slope along a random direction, by reverse mode, forward mode and differences."""
    model = LiquidModel((16, 12) if dim == 2 else (10, 10, 8), 1 / 12, 4e-3)
    g = torch.Generator().manual_seed(0)
    x = torch.as_tensor(fill.box((0,) * dim, (0.5,) * (dim - 1) + (0.45,), model.spacing))
    v, w, dx, dv = (torch.randn(x.shape, generator=g, dtype=torch.float64) for _ in range(4))
    down = torch.tensor(model.gravity, dtype=torch.float64)

    def loss(s: Tensor) -> Tensor:
        end = model.run(steps, x + 0.003 * v.abs() + 0.01 * s * dx, 0.3 * v + s * dv, gravity=down * (1 + s))
        return (w * end.x[-1]).sum() + 0.1 * (w * end.v[-1]).sum() + 1e-3 * end.pressure[-1].sum()

    s = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(loss(s), s)
    forward = torch.func.jvp(loss, (torch.zeros_like(s.detach()),), (torch.ones_like(s.detach()),))[1]
    eps = torch.tensor(1e-6, dtype=torch.float64)
    with torch.no_grad():
        differences = (loss(eps) - loss(-eps)) / (2 * eps)
    assert abs(forward / exact - 1) < 1e-9
    assert abs(differences / exact - 1) < 1e-6


def test_same_bits_and_single_precision() -> None:
    model = LiquidModel((24, 16), 1 / 16, 4e-3)
    x = fill.box((0, 0), (0.6, 0.7), model.spacing)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(model.run(20, x).x)
    torch.set_num_threads(before)
    assert torch.equal(*found)
    single = model.run(20, torch.as_tensor(x).float()).x
    assert single.dtype == torch.float32
    assert (single - found[0]).abs().max() < 1e-3


def test_errors() -> None:
    model = LiquidModel((8, 8), 1 / 8, 5e-3)
    x = fill.box((0.2, 0.2), (0.6, 0.6), model.spacing)
    with pytest.raises(
        FloatingPointError, match=r"in step 0 of 1 1 particles \(3\) are outside of the room, from 0 to \[1.0, 1.0\] m"
    ):
        model.run(1, np.where(np.arange(len(x))[:, None] == 3, 1.5, x))
    with pytest.raises(FloatingPointError, match="move more than a cell"):
        model.run(1, x, np.array([100.0, 0.0]))
    with pytest.raises(
        FloatingPointError, match=r"the pressure of step 0 of 1 was not found: .* is left after 2 iterations"
    ):
        LiquidModel((8, 8), 1 / 8, 5e-3, limit=2).run(1, x, x)
    with pytest.raises(ValueError, match="steps is 0; expected 1 or more"):
        model.run(0, x)
    with pytest.raises(ValueError, match=r"x has the shape \(36, 1\); expected \(..., particles, 2\)"):
        model.run(1, x[:, :1])
    with pytest.raises(ValueError, match=r"v has the shape \(3, 2\); expected \(2\) or \(..., 36, 2\)"):
        model.run(1, x, x[:3])
    with pytest.raises(ValueError, match="gravity has 3 numbers; the room has 2 axes"):
        LiquidModel((8, 8), 1 / 8, 5e-3, gravity=(0, 0, 1))
    with pytest.raises(ValueError, match=r"expected .* truth values"):
        LiquidModel((8, 8), 1 / 8, 5e-3, solid=np.zeros((8, 7), bool))
