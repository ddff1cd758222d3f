"""Number types, batches and histories of cloth."""

from __future__ import annotations

import torch

import costate as cs
from costate.continuum import ClothModel, Collider, Solver, sheet

SINGLE = 2e-5
"""Difference of float32 and float64 after five steps [m]: forces are rounded to 6e-8 of those in stretched cloth, some 100
weights."""


def falling() -> ClothModel:
    ball = Collider(cs.shapes.sphere(0.1), 0.4)
    return ClothModel([sheet((5, 5), (0.3, 0.3))], dt=0.01, colliders=[ball], solver=Solver(1e-4))


def test_single_precision_is_near_double() -> None:
    model = falling()
    lift = torch.tensor([0.01, 0.0, 0.101])
    found = []
    for dtype in (torch.float64, torch.float32):
        x = model.start(dtype=dtype).x + lift.to(dtype)
        history = model.run(5, model.start(x))
        assert history.x.dtype == dtype
        found.append(history.final.x.double())
    assert torch.allclose(*found, atol=SINGLE)


def test_a_batch_is_its_samples() -> None:
    model = falling()
    x = model.start().x + torch.tensor([[[0.01, 0.0, 0.101]], [[0.0, 0.03, 0.102]]], dtype=torch.float64)
    mu = torch.tensor([[0.2], [0.6]], dtype=torch.float64, requires_grad=True)
    both = model.run(5, model.start(x), friction=mu)
    assert both.x.shape == (2, 6, 25, 3) and both.told.shape == (2, 5, 4)
    each = [model.run(5, model.start(x[k]), friction=mu[k]) for k in range(2)]
    assert all(torch.equal(both.x[k], e.x) for k, e in enumerate(each))
    (together,) = torch.autograd.grad(both.final.x.square().sum(), mu)
    (apart,) = torch.autograd.grad([e.final.x.square().sum() for e in each], mu)
    assert torch.allclose(together, apart, rtol=1e-6)


def test_a_run_goes_on_where_another_ended() -> None:
    model = falling()
    start = model.start(model.start().x + torch.tensor([0.01, 0.0, 0.101], dtype=torch.float64))
    whole, first = model.run(6, start), model.run(4, start)
    second = model.run(2, first.final)
    assert torch.equal(whole.final.x, second.final.x)
    assert torch.allclose(whole.times, 0.01 * torch.arange(7, dtype=torch.float64))
