"""The two storages of the sweeps, bodies and trees of links: the same steps, and the same gradients."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import costate as cs
from costate.sim.contact.pgs.choice import only_bodies

D = torch.float64
FLOOR = cs.Static("floor", cs.shapes.plane())
HEIGHTS = (0.1, 0.12, 0.14)


@cache
def stack(trees: bool, substeps: int = 1, **options: Any) -> cs.World:
    """Boxes of several sizes and masses, with their centres of mass beside the middle, on a plane. trees: with a robot that touches
    nothing, for which all of it is stored as trees."""
    bodies = [
        cs.Body(f"box{k}", [cs.shapes.box((0.2, 0.16, h))], 1.0 + k, com=(0.0, 0.01 * k, 0.0))
        for k, h in enumerate(HEIGHTS)
    ]
    names = [b.name for b in bodies]
    touching = [(a, b) for i, a in enumerate(names) for b in [*names[i + 1 :], "floor"]]
    return cs.World(
        {"far": cs.load_robot("pendulum2")} if trees else {}, bodies, [FLOOR], contact=cs.PGS(**options),
        dt=0.01 * substeps, substeps=substeps, collide=touching,
    )  # fmt: skip


def jumbled(world: cs.World, batch: int) -> Tensor:
    """Stacked with gaps and overlaps, turned and moving."""
    random = torch.Generator().manual_seed(0)
    x = world.initial_state(batch)
    below = 0.0
    for k, h in enumerate(HEIGHTS):
        q, v = world.coordinates(f"box{k}")
        noise = torch.randn(batch, 12, dtype=D, generator=random)
        x[:, q.start : q.start + 3] = noise[:, :3] * torch.tensor([0.02, 0.02, 0.002])
        x[:, q.start + 2] += below + h / 2
        x[:, q.start + 3 : q.start + 6] = 0.02 * noise[:, 3:6]
        x[:, v] = 0.2 * noise[:, 6:]
        below += h
    return x


def of_boxes(world: cs.World, x: Tensor) -> Tensor:
    """Coordinates and velocities of the boxes."""
    parts = [world.coordinates(f"box{k}") for k in range(len(HEIGHTS))]
    return torch.cat([x[..., s] for pair in parts for s in pair], -1)


OPTIONS: dict[str, dict[str, Any]] = {
    "warm start": {"warm_start": True, "substeps": 2},
    "split, bounces": {"warm_start": True, "substeps": 2, "correction": "split", "restitution": 0.4},
    "box": {"cone": "box", "restitution": 0.7, "impacts": 1},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bodies_are_trees_of_one(case: str) -> None:
    """Both visit the same points in the same order, so even unfinished sweeps agree, through several impacts in a step. A split
    correction may move shapes into pairs that are out of reach of their velocities: those are looked at, too."""
    bodies, trees = (stack(way, **OPTIONS[case]) for way in (False, True))
    assert only_bodies(bodies.setup) and not only_bodies(trees.setup)
    found = []
    for world in (bodies, trees):
        x = jumbled(world, 16)
        found.append((of_boxes(world, x), of_boxes(world, world.step(x))))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=0, atol=0)
    assert (found[0][1] - found[0][0]).abs().max() > 1
    torch.testing.assert_close(found[1][1], found[0][1], rtol=0, atol=1e-9)


def test_gradients_of_bodies_are_those_of_trees() -> None:
    found = []
    weights = torch.randn(39, dtype=D, generator=torch.Generator().manual_seed(1))
    for way in (False, True):
        world = stack(way, **OPTIONS["split, bounces"])
        x = jumbled(world, 8).requires_grad_()
        found.append(of_boxes(world, torch.autograd.grad((of_boxes(world, world.step(x)) @ weights).sum(), x)[0]))
    assert found[0].abs().max() > 10
    torch.testing.assert_close(found[1], found[0], rtol=1e-8, atol=1e-8)
