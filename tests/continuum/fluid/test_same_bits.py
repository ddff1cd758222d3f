"""A roll-out and its gradient are the same bits for one thread and for two."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from tests.continuum.fluid.scenes import drawn

from costate.continuum.fluid.grid import Grid, border
from costate.continuum.fluid.model import FluidModel


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Give the threads back that were there before."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_one_thread_and_two(dtype: torch.dtype) -> None:
    """The grid is so large that threads share its loops."""
    shape = (130, 70)
    grid = Grid(shape, 0.1, border(shape))
    model = FluidModel(grid, 0.02, 2, tolerance=1e-6, advection="maccormack", conserve=True)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        u, s = drawn(grid, 2, seed=1).to(dtype).requires_grad_(), drawn(grid, seed=2).to(dtype).requires_grad_()
        history = model.run(u, s, buoyancy=(0.0, 1.0), viscosity=1e-3)
        found.append([history.velocity, history.smoke, *torch.autograd.grad(history.smoke[-1].square().sum(), (u, s))])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert all(bool(x.any()) for x in found[0])
