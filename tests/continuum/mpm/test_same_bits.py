"""The same bits for one and two threads, forward and back."""

from __future__ import annotations

import pytest
import torch
from tests.continuum.mpm.scenes import block, moving

from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import cube
from costate.continuum.mpm.model import MpmModel


def results(model: MpmModel, threads: int, dtype: torch.dtype) -> list[torch.Tensor]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        start = moving(model)
        x, v = start.x.to(dtype).requires_grad_(), start.v.to(dtype).requires_grad_()
        E = torch.tensor(1e4, dtype=dtype, requires_grad=True)
        history = model.run(20, model.start(x, v), parameters={"E": E})
        grads = torch.autograd.grad(history.x[-1].square().sum(), (x, v, E))
        return [history.x.detach(), *grads]
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_threads(dtype: torch.dtype) -> None:
    points = fill.box((0.2, 0.15), (0.8, 0.6), 1 / 160)
    model = MpmModel(cube(80), [SoftBody(points, 1 / 160, "neo_hookean")], 1e-3)
    assert len(points) > 5000  # several shares of blocks
    one, two = results(model, 1, dtype), results(model, 2, dtype)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_batch_equals_its_samples() -> None:
    model = block("corotated")
    starts = [moving(model, seed=k) for k in range(3)]
    together = model.run(10, model.start(torch.stack([s.x for s in starts]), torch.stack([s.v for s in starts])))
    alone = [model.run(10, s) for s in starts]
    assert torch.equal(together.x, torch.stack([h.x for h in alone]))


def test_going_on_from_a_final_state_equals_one_run() -> None:
    model = block("plasticine")
    whole = model.run(30, moving(model)).final
    first = model.run(18, moving(model)).final
    assert torch.equal(model.run(12, first).final.x, whole.x)
