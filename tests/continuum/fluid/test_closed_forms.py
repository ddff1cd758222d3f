"""Flows with a solution on paper: decaying vortices, channels, a moving wall, hydrostatics, a drag that balances."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.continuum.fluid.grid import Grid, border
from costate.continuum.fluid.model import FluidModel


def vortices(grid: Grid) -> torch.Tensor:
    """Return the velocity of the Taylor-Green vortices in a square of edge 1 (2, n, n)."""
    k = 2 * np.pi
    x, y = grid.face_centres(0), grid.face_centres(1)
    u = np.sin(k * x[..., 0]) * np.cos(k * x[..., 1])
    v = -np.cos(k * y[..., 0]) * np.sin(k * y[..., 1])
    return torch.as_tensor(np.stack([u, v]))


def vortex_error(n: int, scheme: str, steps: int, viscosity: float = 0.002, time: float = 0.5) -> float:
    """Return the root mean square error of the velocity after some time, by the start's."""
    grid = Grid((n, n), 1 / n)
    u = vortices(grid)
    model = FluidModel(grid, time / steps, steps, scheme, segment=steps)
    exact = u * np.exp(-2 * (2 * np.pi) ** 2 * viscosity * time)
    return float(
        (model.run(u, viscosity=viscosity).velocity[-1] - exact).square().mean().sqrt() / u.square().mean().sqrt()
    )


def orders(errors: list[float]) -> np.ndarray:
    """Return the order of convergence from each grid to the next, which is twice as fine."""
    return np.log2(np.array(errors[:-1]) / errors[1:])


@pytest.mark.parametrize(("scheme", "finest"), [("semi_lagrangian", 0.11), ("maccormack", 0.055)])
def test_taylor_green_vortices_decay(scheme: str, finest: float) -> None:
    """Vortices keep their shape and decay as exp(-2 k^2 nu t). With dt as the cell (0.8 cells per step) both schemes tend to first
    order: that of linear interpolation, and that of taking the pressure after advection."""
    errors = [vortex_error(n, scheme, round(n / 1.6)) for n in (16, 32, 64)]
    assert (orders(errors) > [0.7, 0.83]).all(), (errors, orders(errors))
    assert errors[-1] < finest


def test_maccormack_is_of_second_order_in_space() -> None:
    """With dt as the square of the cell, errors of time fall as those of space should; the order tends to 2."""
    errors = [vortex_error(n, "maccormack", n * n // 14) for n in (12, 24, 48)]
    assert (orders(errors) > [1.55, 1.8]).all(), (errors, orders(errors))


def channel(n: int, steps: int, dt: float, top: float, push: float) -> np.ndarray:
    """Return the speeds across a channel of width 1 after some steps: walls below and above, one of which may move."""
    shape = (4, n + 2)
    solid = border(shape, axes=(1,))
    grid = Grid(shape, 1 / n, solid)
    walls = torch.zeros(2, *shape, dtype=torch.float64)
    walls[0, :, -1] = top
    force = torch.zeros(1, 2, *shape, dtype=torch.float64)
    force[0, 0] = push
    model = FluidModel(grid, dt, steps, patterns=1, segment=steps)
    u = model.run(given=walls, patterns=force, viscosity=1.0).velocity[-1, 0].numpy()
    assert np.ptp(u, axis=0).max() < 1e-12
    return u[0, 1:-1]


@pytest.mark.parametrize("n", [8, 16])
def test_poiseuille(n: int) -> None:
    """A pushed fluid between walls ends as a parabola. Central differences know parabolas; walls at half a cell from the outermost
    faces add f h^2 / 8."""
    y = (np.arange(n) + 0.5) / n
    settled = channel(n, 12 * n**2, 0.19 / n**2, top=0.0, push=3.0)
    assert np.allclose(settled, 1.5 * y * (1 - y) + 3.0 / 8 / n**2, rtol=1e-8)


def test_couette() -> None:
    """A wall that moves drags the fluid into a straight profile."""
    y = (np.arange(8) + 0.5) / 8
    assert np.allclose(channel(8, 1000, 0.19 / 64, top=2.0, push=0.0), 2.0 * y, rtol=1e-8)


def test_hydrostatics() -> None:
    """Layers of smoke in a closed box rest; the pressure grows downwards by the weight of what is above."""
    shape = (8, 12)
    grid = Grid(shape, 0.25, border(shape))
    s = torch.linspace(2, 1, 12, dtype=torch.float64).expand(shape) * torch.as_tensor(grid.fluid)
    history = FluidModel(grid, 0.1, 5).run(smoke=s, buoyancy=(0.0, -9.81))
    assert history.velocity.abs().max() < 1e-9
    p = history.pressure[-1, 4, 1:-1].numpy()
    weight = 9.81 * 0.25 * (s[4, 1:-2] + s[4, 2:-1]).numpy() / 2
    assert np.allclose(p[:-1] - p[1:], weight, rtol=1e-9)


def test_stream_through_porous_cells() -> None:
    """A pushed stream with resistance r everywhere reaches the speed f / r, where the drag balances the push."""
    grid = Grid((6, 6), 0.5)
    force = torch.zeros(1, 2, 6, 6, dtype=torch.float64)
    force[0, 0] = 3.0
    r = torch.full((6, 6), 2.0, dtype=torch.float64)
    history = FluidModel(grid, 0.1, 200, patterns=1, porous=True).run(patterns=force, resistance=r)
    assert torch.allclose(history.velocity[-1, 0], torch.full((6, 6), 1.5, dtype=torch.float64), rtol=1e-12)
    assert torch.allclose(history.force[-1], torch.tensor([3.0 * 36 * 0.25, 0.0], dtype=torch.float64), atol=1e-11)


def test_open_top_lets_a_stream_out() -> None:
    """A wall that blows at the bottom drives a plug through a channel that is open on top: as much leaves as enters."""
    shape = (8, 10)
    solid = border(shape, axes=(0,)) | border(shape, axes=(1,), sides=(0,))
    grid = Grid(shape, 0.1, solid, border(shape, axes=(1,), sides=(-1,)))
    blow = torch.zeros(2, *shape, dtype=torch.float64)
    blow[1, 3:5, 1] = 1.0
    v = FluidModel(grid, 0.02, 20, slip=True).run(given=blow).velocity[-1]
    through = v[1, 1:-1].sum(0)
    assert torch.allclose(through[1:], torch.full((9,), 2.0, dtype=torch.float64), atol=1e-8)
