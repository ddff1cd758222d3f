"""Sweeps in worlds of free bodies: gradients, lanes, and what a pile of bodies weighs."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from tests.gradients import check_gradients
from torch import Tensor

import costate as cs

HEIGHTS = (0.1, 0.12, 0.14)


@cache
def stack(substeps: int = 1, **options: Any) -> cs.World:
    """Boxes of several sizes and masses, with their centres of mass beside the middle, on a plane."""
    bodies = [
        cs.Body(f"box{k}", [cs.shapes.box((0.2, 0.16, h))], 1.0 + k, com=(0.0, 0.01 * k, 0.0))
        for k, h in enumerate(HEIGHTS)
    ]
    floor = cs.Static("floor", cs.shapes.plane())
    contact = cs.PGS(**options)
    return cs.World(bodies=bodies, scenery=[floor], contact=contact, dt=0.01 * substeps, substeps=substeps)


def jumbled(world: cs.World, batch: int) -> Tensor:
    """Stacked with gaps and overlaps, turned and moving."""
    random = torch.Generator().manual_seed(0)
    x = world.initial_state(batch)
    below = 0.0
    for k, h in enumerate(HEIGHTS):
        q, v = world.coordinates(f"box{k}")
        noise = torch.randn(batch, 12, dtype=torch.float64, generator=random)
        x[:, q.start : q.start + 3] = noise[:, :3] * torch.tensor([0.02, 0.02, 0.002])
        x[:, q.start + 2] += below + h / 2
        x[:, q.start + 3 : q.start + 6] = 0.02 * noise[:, 3:6]
        x[:, v] = 0.2 * noise[:, 6:]
        below += h
    return x


def test_lanes_do_not_matter() -> None:
    """Which pairs are near differs from sample to sample; alone each does what it does among others."""
    world = stack(warm_start=True, substeps=2)
    x = jumbled(world, 4)
    x[0, world.coordinates("box1")[0].start + 2] += 1.0
    x[1, world.coordinates("box0")[0].start] += 1.0
    together = world.step(x)
    for k in range(len(x)):
        assert torch.equal(world.step(x[k]), together[k])


def balls() -> cs.World:
    """Three balls of which two lie on the third and on a plane; as many parameters as there are kinds."""
    bodies = [cs.Body(f"ball{k}", [cs.shapes.sphere(0.1)], 1.0 + k) for k in range(3)]
    parameters = ["friction", "restitution", "gravity", "mass:ball1/body", "size:ball0", "position:ball2"]
    contact = cs.PGS(sweeps=5)
    return cs.World(
        bodies=bodies, scenery=[cs.Static("floor", cs.shapes.plane())], contact=contact, parameters=parameters
    )


def falling(world: cs.World) -> Tensor:
    """They touch, and some slide and bounce."""
    x = world.initial_state()
    for k, (px, pz) in enumerate(((0.0, 0.0991), (0.197, 0.0985), (0.1, 0.2688))):
        q, v = world.coordinates(f"ball{k}")
        x[q.start], x[q.start + 2] = px, pz
        x[v] = torch.tensor([0.3, -0.2, -0.4, 0.5, 1.0, -0.7], dtype=torch.float64) * (1 + 0.2 * k)
    return x


def test_gradients() -> None:
    """Of a step in the state and in parameters of every kind, reverse and forward, against differences."""
    world = balls()
    names = world.setup.parameters
    values = [torch.tensor(world.setup.default(p)) for p in names]
    values[names.index("friction")] = torch.tensor([0.3], dtype=torch.float64)
    values[names.index("restitution")] = torch.tensor([0.5], dtype=torch.float64)

    def step(x: Tensor, *given: Tensor) -> Tensor:
        return world.step(x, params=dict(zip(names, given, strict=True)))

    x = falling(world)
    check_gradients(step, (x, *values), names=("x", *names))


def test_gradients_through_boxes() -> None:
    """The reverse pass of a step against differences along a random direction."""
    world = stack(warm_start=True, substeps=2)
    random = torch.Generator().manual_seed(1)
    x = jumbled(world, 8)
    weights, way = (torch.randn(world.nx, dtype=torch.float64, generator=random) for _ in range(2))

    def value(t: float) -> Tensor:
        return world.step(x + t * way) @ weights

    x.requires_grad_()
    (gradient,) = torch.autograd.grad(value(0.0).sum(), x)
    x = x.detach()
    h = 1e-10  # boxes that are about to touch do so not far away, and impacts on corners bend the value much
    slope = (value(h) - value(-h)) / (2 * h)
    assert slope.abs().min() > 10
    torch.testing.assert_close(gradient @ way, slope, rtol=1e-5, atol=0)


def test_forces_carry_the_weight() -> None:
    """Contacts at rest: the floor carries all boxes."""
    world = stack(sweeps=2000)
    x = world.initial_state()
    below = 0.0
    for k, h in enumerate(HEIGHTS):
        x[world.coordinates(f"box{k}")[0].start + 2] = below + h / 2 - 1e-6 * (k + 1)
        below += h
    found = world.contacts(x)
    on_floor = torch.tensor(["world" in pair for pair in found.pairs])
    assert float(found.forces[on_floor].sum()) == pytest.approx(6 * 9.81, rel=1e-6)
    assert float(found.residual) < 1e-8
    torch.testing.assert_close(found.gaps, world.gaps(x), rtol=0, atol=1e-12)
