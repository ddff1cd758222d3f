"""A roll-out and its gradient are the same bits for one thread and for two."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from tests.continuum.heat.parts import BENT
from torch import Tensor

from costate.continuum.deposit import Process
from costate.continuum.heat.model import HeatModel
from costate.continuum.shapes import Plate, block


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Give the threads back that were there before."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def roll_out(model: HeatModel, dtype: torch.dtype) -> list[Tensor]:
    """Return the frames of a roll-out, and their gradient with respect to power and temperatures."""
    power = torch.linspace(300, 500, model.steps, dtype=dtype).requires_grad_()
    T0 = torch.linspace(300, 1800, len(model.mesh.nodes), dtype=dtype).requires_grad_()
    history = model.run(power, T0)
    weights = torch.cos(torch.arange(history.T.numel(), dtype=dtype)).reshape(history.T.shape)
    return [
        history.T.detach(),
        history.readings.detach(),
        *torch.autograd.grad((weights * history.T).sum(), (power, T0)),
    ]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_one_thread_and_two(dtype: torch.dtype) -> None:
    """The part is so large that threads share its loops."""
    process = Process(speed=0.2, travel=2.0)
    part = block((0.012, 0.012, 0.003), hatch=0.004, plate=Plate(thickness=0.016, margin=0.002), process=process)
    assert len(part.mesh.elements) > 4000
    path = part.path
    model = HeatModel(part.mesh, path, BENT, dt=path.duration / 20, sensors=[(0, 0, 0)], segment=8)
    torch.set_num_threads(1)
    one = roll_out(model, dtype)
    torch.set_num_threads(2)
    two = roll_out(model, dtype)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert all(bool(g.any()) for g in one)
