"""Gradients against differences, over many steps, in everything that can be given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.continuum.fluid.scenes import drawn, scene, still_walls
from tests.gradients import check_gradients
from torch import Tensor

from costate.continuum.fluid.model import FluidModel


def loss_of(model: FluidModel, names: list[str], weights: Tensor):
    """Return a function of the named inputs: a weighted sum of the smoke and velocities at the end, and the force on the way."""

    def loss(*values: Tensor) -> Tensor:
        given: dict[str, Any] = dict(zip(names, values, strict=True))
        given["given"] = given["given"] * torch.as_tensor(model.grid.inside)  # walls rub, and nothing comes out of them
        given["viscosity"] = 0.02 * torch.sigmoid(given["viscosity"])
        history = model.run(**given)
        state = torch.cat([history.velocity[-1], history.smoke[-1:]])
        return (
            (weights.to(state.dtype) * state).sum()
            + history.force.sum()
            + (weights[0].to(state.dtype) * history.pressure[-1]).sum()
        )

    return loss


def inputs(model: FluidModel, d: int) -> dict[str, Tensor]:
    """Return numbers for everything that a roll-out takes."""
    grid = model.grid
    return {
        "velocity": still_walls(grid, drawn(grid, d, seed=1)),
        "smoke": drawn(grid, seed=2),
        "source": drawn(grid, seed=3),
        "given": 0.3 * drawn(grid, d, seed=4),
        "patterns": drawn(grid, 2, d, seed=5),
        "controls": torch.linspace(-1, 1, 2 * model.steps, dtype=torch.float64).reshape(-1, 2),
        "resistance": drawn(grid, seed=6).abs(),
        "viscosity": torch.tensor(0.1, dtype=torch.float64),
        "buoyancy": torch.linspace(0.5, 1.0, d, dtype=torch.float64),
    }


@pytest.mark.parametrize(
    ("kind", "d", "options"),
    [
        ("open", 2, {"slip": True}),
        ("closed", 2, {"advection": "maccormack"}),
        ("closed", 3, {"conserve": True, "slip": True}),
    ],
)
def test_everything_that_is_given(kind: str, d: int, options: dict) -> None:
    """Three steps: values, both modes of differentiation, their duality, float32. The weights of the pressure have a mean, which
    in a closed fluid nothing depends on."""
    grid = scene(kind, d)
    model = FluidModel(grid, 0.03, 3, patterns=2, porous=True, tolerance=1e-13, **options)
    given = inputs(model, d)
    names = list(given)
    weights = drawn(grid, d + 1, seed=9)
    check_gradients(loss_of(model, names, weights), tuple(given.values()), names=tuple(names))


def test_many_steps() -> None:
    """A hundred steps of a plume around an obstacle, along the gradient and a random direction, to 1e-6."""
    grid = scene("closed", 2)
    model = FluidModel(grid, 0.05, 100, advection="maccormack", segment=7, tolerance=1e-13)
    u = still_walls(grid, drawn(grid, 2, seed=1, size=0.5))
    source = drawn(grid, seed=3).abs()
    target = drawn(grid, seed=4)

    def loss(u: Tensor, source: Tensor) -> Tensor:
        return (target * model.run(u, source=source, buoyancy=(0.0, 0.1), viscosity=0.005).smoke[-1]).sum()

    points = [u.requires_grad_(), source.requires_grad_()]
    grads = torch.autograd.grad(loss(*points), points)
    assert all(g.abs().max() > 1e-3 for g in grads)
    ways = [[drawn(grid, 2, seed=7), drawn(grid, seed=8)], [g / g.norm() for g in grads]]
    for way in ways:
        slope = float(sum((g * w).sum() for g, w in zip(grads, way, strict=True)))
        with torch.no_grad():
            ends = [loss(*(x + s * 1e-6 * w for x, w in zip(points, way, strict=True))) for s in (1, -1)]
        assert float(ends[0] - ends[1]) / 2e-6 == pytest.approx(slope, rel=1e-6)
