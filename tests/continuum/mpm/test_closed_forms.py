"""Motions with known answers: a column that swings, settles or spreads, and what slides down a slope."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import costate as cs
from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.walls import MARGIN, Obstacle


def column(cells: int, material: str = "neo_hookean", gravity: float = 0.0, **numbers: float) -> tuple[MpmModel, float]:
    """Return a column between slipping walls that sticks to the floor, and its length [m]. Walls end at their nodes."""
    dx = 1 / cells
    floor = (MARGIN - 1) * dx
    wide = 8
    length = 0.5
    points = fill.box((floor, floor), ((wide + 1 - MARGIN) * dx, floor + length), dx / 2)
    body = SoftBody(points, dx / 2, material, numbers)
    sides = {"-x": "slip", "+x": "slip", "-y": "sticky"}
    h = 0.4 * dx / np.sqrt(body.law.stiffness(body.values()) / body.values()["density"])
    model = MpmModel(MpmGrid((wide + 1, cells), dx), [body], float(h), 1, (0.0, gravity), sides, segment=8)
    return model, length


@pytest.mark.parametrize("material", ["neo_hookean", "corotated"])
def test_a_column_swings_at_the_frequency_of_its_waves(material: str) -> None:
    """First mode of a bar: a quarter wave, period 4 L / c; the error falls with the cells. Poisson's ratio is 0: walls cannot
    pull."""
    errors = []
    for cells in (32, 64):
        model, length = column(cells, material, E=1e4, nu=0.0)
        c = model.grid.dx / model.limits[0]
        period = 4 * length / c
        start = model.start()
        y = (start.x[:, 1] - start.x[:, 1].min()) / length
        v = torch.stack([0 * y, 0.01 * torch.sin(np.pi / 2 * y)], -1)
        steps = 8 * round(0.8 * period / model.dt / 8)
        history = model.run(steps, model.start(v=v))
        motion = history.x[:, :, 1].mean(-1)
        motion = (motion - motion[0]).numpy()
        k = int(np.nonzero((motion[1:-1] > 0) & (motion[2:] <= 0))[0][0]) + 1
        crossing = np.interp(0, [motion[k + 1], motion[k]], [history.times[k + 1], history.times[k]])
        errors.append(abs(2 * crossing / period - 1))
    assert errors[0] < 0.02
    assert errors[1] < 0.7 * errors[0]


def test_a_liquid_column_swings_about_its_hydrostatic_rest() -> None:
    """Let go under gravity, its centre swings about the settlement rho g L^2 / (3 K), over one period."""
    model, length = column(64, "liquid", -9.81, bulk=4e5, gamma=1.0)
    c = model.grid.dx / model.limits[0]
    period = 4 * length / c
    history = model.run(8 * round(period / model.dt / 8), model.start())
    height = history.x[:, :, 1].mean(-1)
    settled = float(height[0] - height[:-1].mean())
    assert abs(settled / (1000 * 9.81 * length**2 / 3 / 4e5) - 1) < 0.02


def test_friction_on_a_slope() -> None:
    """A block on a slope of a = 30 degrees slides at g (sin a - mu cos a), and rests if mu is above tan a. Gravity is tilted."""
    dx, angle = 1 / 40, np.radians(30)
    floor = (MARGIN - 1) * dx
    points = fill.box((0.3, floor), (0.5, floor + 0.1), dx / 2)
    for mu in (0.3, 1.2):
        body = SoftBody(points, dx / 2, "neo_hookean", {"E": 2e5})
        gravity = (9.81 * np.sin(angle), -9.81 * np.cos(angle))
        model = MpmModel(MpmGrid((60, 24), dx), [body], 5e-4, gravity=gravity, sides={"-y": mu})
        way = float((model.run(400).final.x - model.start().x)[:, 0].mean())
        want = max(9.81 * (np.sin(angle) - mu * np.cos(angle)), 0.0) * 0.2**2 / 2
        assert abs(way - want) < 0.05 * 9.81 * np.sin(angle) * 0.2**2 / 2


def test_an_obstacle_of_our_shapes_holds() -> None:
    """A ball of jelly falls onto a fixed ball, and stays out of it."""
    dx = 1 / 40
    jelly = SoftBody(
        fill.fill(cs.shapes.sphere(0.1, (0.5, 0.66, 0)), dx / 2, (0.3, 0.5), (0.7, 0.8)),
        dx / 2,
        "neo_hookean",
        {"E": 2e4},
    )
    model = MpmModel(
        MpmGrid((40, 40), dx), [jelly], 1e-3, obstacles=[Obstacle(cs.shapes.sphere(0.2, (0.5, 0.3, 0)), "slip")]
    )
    x = model.run(250).x
    gap = (x - torch.tensor([0.5, 0.3])).norm(dim=-1) - 0.2
    assert gap[0].min() > 0.03
    assert gap.min() > -dx  # within a cell
    assert x[-1, :, 1].min() > 0.3  # it is still on top


@pytest.mark.parametrize("ratio", [0.8, 2.0])
def test_a_column_of_sand_spreads_as_in_experiments(ratio: float) -> None:
    """Lube et al. 2005: a column of height h and length l against a wall runs out to l (1 + 1.2 h / l), for h / l below 2.3."""
    dx = 1 / 64
    length = 0.16
    low = (MARGIN - 1) * dx
    points = fill.box((low, low), (low + length, low + ratio * length), dx / 2)
    sand = SoftBody(points, dx / 2, "sand", {"E": 1e5, "angle": 31.0, "density": 1500.0})
    model = MpmModel(MpmGrid((64, 40), dx), [sand], 1e-3, sides={"-x": "slip", "-y": 0.6})
    steps = 700
    end = model.run(steps).final
    assert float(end.v.norm(dim=-1).mean()) < 0.05  # it has come to rest
    front = np.quantile(end.x[:, 0].numpy(), 0.995) - low
    assert abs((front / length - 1) / (1.2 * ratio) - 1) < 0.3
