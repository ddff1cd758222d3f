"""Tools that move as they are told among particles."""

from __future__ import annotations

import pytest
import torch

import costate as cs
from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.robots import Pusher, SoftTools, SoftWorld, Tool, tool_rows

DT, DX, STEPS = 1e-3, 0.02, 60
SAME = 1e-9
"""Difference [m] of particles that a tool pushes from those that a ball of 1e9 kg pushes."""


def model(**options) -> MpmModel:
    """A block of plasticine in the air."""
    points = fill.box((0.16, 0.12, 0.12), (0.24, 0.22, 0.22), DX / 2)
    body = SoftBody(points, DX / 2, "plasticine", {"E": 5e3, "yield": 200.0})
    return MpmModel(MpmGrid((20, 18, 18), DX), [body], DT, 1, (0, 0, 0), "open", segment=20, **options)


def way(velocity: torch.Tensor) -> torch.Tensor:
    """Where a tool is that moves to the block, (STEPS + 1, 3)."""
    start = torch.tensor([0.1313, 0.1671, 0.1737], dtype=torch.float64)
    return start + DT * torch.arange(STEPS + 1, dtype=torch.float64)[:, None] * velocity


def test_a_tool_pushes_like_a_very_heavy_body() -> None:
    speed = torch.tensor([0.5, 0.1, 0.0], dtype=torch.float64)
    tools = SoftTools(model(), [Tool(cs.shapes.sphere(0.03), 0.6)])
    x = tools.run(tool_rows(way(speed), DT)[:, None]).x
    ball = cs.Body("ball", [cs.shapes.sphere(0.03)], mass=1e9)
    world = cs.World(bodies=[ball], contact=None, dt=DT, gravity=(0, 0, 0))
    scene = SoftWorld(tools.model, world, [Pusher("ball/body", cs.shapes.sphere(0.03), 0.6)])
    start = world.initial_state(dtype=torch.float64).clone()
    start[:3], start[world.nq : world.nq + 3] = way(speed)[0], speed
    other = scene.run(start, torch.zeros(STEPS, world.nu, dtype=torch.float64)).x
    assert (x[-1] - x[0]).abs().max() > 0.01
    assert torch.allclose(x, other, atol=SAME)


def test_gradients_by_the_motion() -> None:
    """By velocity and angular velocity of a stick that turns while it pushes, against differences."""
    tools = SoftTools(model(), [Tool(cs.shapes.capsule(0.02, 0.06), 0.6), Tool(cs.shapes.sphere(0.02), "slip")])
    g = torch.Generator().manual_seed(3)
    w = torch.randn(tools.model.particles, 3, generator=g).double()

    def loss(e: torch.Tensor) -> torch.Tensor:
        speed = torch.tensor([0.5, 0.1, 0.0], dtype=torch.float64) + e * torch.tensor([0.3, -0.7, 0.4])
        angle = 0.2 + (5 + e) * DT * torch.arange(STEPS, dtype=torch.float64)
        c, s, zero, one = torch.cos(angle), torch.sin(angle), torch.zeros_like(angle), torch.ones_like(angle)
        R = torch.stack([c, zero, s, zero, one, zero, -s, zero, c], -1).unflatten(-1, (3, 3))
        spin = (5 + e) * torch.stack([zero, one, zero], -1)
        rows = [tool_rows(way(speed), DT, R, spin), tool_rows(way(-0.2 * speed) + 0.06, DT)]
        return (w * tools.run(torch.stack(rows, -2)).x[-1]).sum()

    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(loss(e), e)
    eps = 1e-6
    with torch.no_grad():
        differences = (loss(torch.tensor(eps).double()) - loss(torch.tensor(-eps).double())) / (2 * eps)
    assert abs(exact - differences) < 1e-5 * abs(exact)


def test_what_cannot_be_is_refused() -> None:
    ball = [Tool(cs.shapes.sphere(0.03))]
    with pytest.raises(ValueError, match="steps, 1, 18"):
        SoftTools(model(), ball).run(torch.zeros(3, 18))
    with pytest.raises(ValueError, match="no tool is given"):
        SoftTools(model(), [])
    body = model().bodies[0]
    with pytest.raises(ValueError, match="give the model dt="):
        SoftTools(MpmModel(model().grid, [body], 0.02, sides="open"), ball)
    flat = MpmModel(MpmGrid((20, 20), DX), [SoftBody(body.points[:, :2], DX / 2)], DT, 1)
    with pytest.raises(ValueError, match="tools move in 3D"):
        SoftTools(flat, ball)
