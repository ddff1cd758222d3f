"""Impacts by sweeps: known answers of balls in space."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import costate as cs

D = torch.float64
FLOOR = cs.Static("floor", cs.shapes.plane())


def balls(count: int, scenery: tuple[cs.Static, ...] = (), dt: float = 0.01, **options: Any) -> cs.World:
    """Spheres of radius 0.1 m; elastic, smooth, rigid (no cfm) and without gravity if not told otherwise."""
    gravity, heavier = options.pop("gravity", (0.0, 0.0, 0.0)), options.pop("heavier", 0.0)
    contact = cs.PGS(**{"restitution": 1.0, "friction": 0.0, "cfm": 0.0, **options})
    bodies = [cs.Body(f"ball{k}", [cs.shapes.sphere(0.1)], 1.0 + heavier * k) for k in range(count)]
    return cs.World(bodies=bodies, scenery=list(scenery), contact=contact, dt=dt, gravity=gravity)


def state(world: cs.World, places: Tensor, velocities: Tensor) -> Tensor:
    """Return the state of balls at some places, (..., count, 3), with velocities of their centres, and spins if they are six."""
    n = places.shape[-2]
    q = world.initial_state()[: 7 * n].reshape(n, 7).expand(*places.shape[:-1], 7).clone()
    q[..., :3] = places
    v = torch.zeros(*places.shape[:-1], 6, dtype=D)
    v[..., : velocities.shape[-1]] = velocities
    return torch.cat([q.flatten(-2), v.flatten(-2)], -1)


def oblique(x1: float) -> Tensor:
    """Place of the second disc after 1 s: (x1, 0) at (1, 0.05) strikes one at rest in (0.1, 0.09); equal masses, elastic."""
    start, v, other = (
        torch.tensor([x1, 0.0], dtype=D),
        torch.tensor([1.0, 0.05], dtype=D),
        torch.tensor([0.1, 0.09], dtype=D),
    )
    d = start - other
    a, b, c = v @ v, d @ v, d @ d - 0.04
    t = (-b - torch.sqrt(b * b - a * c)) / a
    n = (d + t * v) / 0.2
    return other + (1 - t) * (v @ n) * n


@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_oblique_impact(dt: float) -> None:
    """Place of the ball that is struck, and its derivative in where the other one starts."""
    world = balls(2, dt=dt)
    places = torch.tensor([[-0.5, 0, 0], [0.1, 0.09, 0]], dtype=D, requires_grad=True)
    velocities = torch.tensor([[1, 0.05, 0], [0, 0, 0]], dtype=D)
    final = world.rollout(state(world, places, velocities), torch.zeros(round(1 / dt), 0, dtype=D))[-1, 7:9]
    slopes = torch.stack([torch.autograd.grad(final[k], places, retain_graph=True)[0][0, 0] for k in range(2)])
    torch.testing.assert_close(final.detach(), oblique(-0.5), rtol=0, atol=1e-9)
    expected = (oblique(-0.5 + 1e-6) - oblique(-0.5 - 1e-6)) / 2e-6
    torch.testing.assert_close(slopes, expected, rtol=0, atol=1e-6)


def test_dropped_ball() -> None:
    """From 1 m, elastic, after 0.8 s: the first bounce is at t = sqrt(2 / g); errors fall with the step."""
    g, seconds = 9.81, 0.8
    t = math.sqrt(2 / g)
    exact = torch.tensor([g * t * (seconds - t) - g / 2 * (seconds - t) ** 2, 2 * (seconds - t) / t - 1], dtype=D)
    errors = []
    for dt in (0.01, 0.001):
        world = balls(1, (FLOOR,), dt=dt, gravity=(0, 0, -g))
        places = torch.tensor([[0, 0, 1.1]], dtype=D, requires_grad=True)
        start = state(world, places, torch.zeros(1, 3, dtype=D))
        height = world.rollout(start, torch.zeros(round(seconds / dt), 0, dtype=D))[-1, 2] - 0.1
        (slope,) = torch.autograd.grad(height, places)
        errors.append((torch.stack([height.detach(), slope[0, 2]]) - exact).abs())
    assert errors[0].max() < 0.1 and errors[1].max() < 0.01


def test_gas_keeps_its_energy() -> None:
    """Eight balls in a smooth box, elastic, 2 m/s: hundreds of impacts."""
    quarter = math.pi / 2
    turns = {(0.3, 0, 0): (0, -quarter, 0), (-0.3, 0, 0): (0, quarter, 0), (0, 0.3, 0): (quarter, 0, 0)}
    turns |= {(0, -0.3, 0): (-quarter, 0, 0), (0, 0, -0.3): (0, 0, 0), (0, 0, 0.3): (math.pi, 0, 0)}
    walls = tuple(cs.Static(f"wall{k}", cs.shapes.plane(at, turn)) for k, (at, turn) in enumerate(turns.items()))
    world = balls(8, walls)
    corners = torch.tensor([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=D)
    random = torch.Generator().manual_seed(0)
    velocities = 2 * torch.randn(8, 3, dtype=D, generator=random)
    start = state(world, 0.14 * corners, velocities)
    states = world.rollout(start, torch.zeros(100, 0, dtype=D))
    energy = world.energy(states)
    assert (energy - energy[0]).abs().max() < 1e-10 * energy[0]
    assert states[:, :56].reshape(-1, 8, 7)[..., :3].abs().max() < 0.2 + 1e-6
    assert (states[-1, 56:].reshape(8, 6)[:, :3] - velocities).norm(
        dim=-1
    ).min() > 0.1  # every ball has struck something


def test_touching_balls_pass_the_blow_on() -> None:
    """Four balls in a row that touch, and one that strikes them: the last leaves with its speed, all others rest."""
    world = balls(5)
    places = torch.zeros(5, 3, dtype=D)
    places[:, 0] = torch.tensor([-0.005, 0.2, 0.4, 0.6, 0.8])
    velocities = torch.zeros(5, 3, dtype=D)
    velocities[0, 0] = 1.0
    v = world.step(state(world, places, velocities))[35:].reshape(5, 6)
    expected = torch.zeros(5, 6, dtype=D)
    expected[4, 0] = 1.0
    torch.testing.assert_close(v, expected, rtol=0, atol=1e-6)
