"""Height fields as walls: a wavy ground, and what slides down a slope of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.continuum.mpm import fill
from costate.continuum.mpm.body import SoftBody
from costate.continuum.mpm.grid import MpmGrid
from costate.continuum.mpm.model import MpmModel
from costate.continuum.mpm.walls import Contact, Obstacle, ground


@pytest.mark.parametrize("dim", [2, 3])
def test_distances_are_those_of_the_surface(dim: int) -> None:
    """Against the nearest of many points of the surface y = 0.2 + 0.1 sin(6 x), which is the same along the third axis."""
    heights = 0.2 + 0.1 * np.sin(6 * np.linspace(0, 1, 41))
    shape = ground(heights, [0], [1]) if dim == 2 else ground(heights[:, None].repeat(3, 1), [0, -1], [1, 1])
    random = np.random.default_rng(0)
    points = np.zeros((300, dim))
    points[:, 0] = random.uniform(0.1, 0.9, 300)
    points[:, -1] = 0.2 + 0.1 * np.sin(6 * points[:, 0]) + random.uniform(-0.04, 0.04, 300)
    d, n = Obstacle(shape).at(points)
    s = np.linspace(0, 1, 20001)
    curve = np.stack([s, 0.2 + 0.1 * np.sin(6 * s)], -1)
    way = points[:, None, [0, -1]] - curve
    far = np.linalg.norm(way, axis=-1)
    nearest = far.argmin(1)
    above = np.sign(points[:, -1] - 0.2 - 0.1 * np.sin(6 * points[:, 0]))
    assert np.abs(d - above * far.min(1)).max() < 1e-5
    slope = 0.6 * np.cos(6 * s[nearest])
    normal = np.stack([-slope, np.ones(300)], -1) / np.hypot(slope, 1)[:, None]
    assert np.abs(n[:, [0, -1]] - normal).max() < 2e-3


def slide(contact: Contact, angle: float, seconds: float) -> float:
    """Return how far [m] a block slides down a slope that is a height field, at no angle of the grid."""
    dx = 1 / 40
    along, up = np.array([np.cos(angle), -np.sin(angle)]), np.array([np.sin(angle), np.cos(angle)])
    points = fill.box((0, 0), (0.2, 0.1), dx / 2) @ np.stack([along, up])
    points += np.array([0.25, 0.7 - np.tan(angle) * 0.25]) + dx / 2 * up  # particles come half a cell near
    slope = ground([0.7, 0.7 - 1.5 * np.tan(angle)], [0], [1.5])
    body = SoftBody(points, dx / 2, "neo_hookean", {"E": 2e5})
    model = MpmModel(MpmGrid((60, 44), dx), [body], 1e-3, obstacles=[Obstacle(slope, contact)])
    way = (model.run(round(seconds / 1e-3)).final.x - model.start().x).mean(0).numpy()
    return float(way @ along)


def test_what_slides_on_a_slope() -> None:
    """Way g (sin a - mu cos a) t^2 / 2 where that is positive; nothing moves on a sticky slope or under much friction."""
    angle, seconds = np.radians(25), 0.3
    free = 9.81 * np.sin(angle) * seconds**2 / 2
    assert abs(slide("slip", angle, seconds) - free) < 0.003 * free
    for mu in (0.2, 0.8):
        want = max(9.81 * (np.sin(angle) - mu * np.cos(angle)), 0.0) * seconds**2 / 2
        assert abs(slide(mu, angle, seconds) - want) < 0.015 * free
    assert abs(slide("sticky", angle, seconds)) < 0.015 * free


def test_a_lake_between_hills() -> None:
    """A viscous liquid in 3D comes to rest in the dip, with a level top, and none of it in the ground."""
    dx = 1 / 16
    x, y = np.meshgrid(np.linspace(0, 1, 17), np.linspace(0, 1, 17), indexing="ij")
    bowl = ground(0.15 + 0.8 * ((x - 0.5) ** 2 + (y - 0.5) ** 2), [0, 0], [1, 1])
    points = fill.box((0.35, 0.35, 0.3), (0.65, 0.65, 0.6), dx / 2)
    water = SoftBody(points, dx / 2, "liquid", {"bulk": 2e4, "viscosity": 10.0})
    model = MpmModel(MpmGrid((17, 17, 16), dx), [water], 4e-3, obstacles=[Obstacle(bowl, "slip")])
    end = model.run(500).final
    assert float(end.v.norm(dim=-1).mean()) < 0.05
    inside = torch.as_tensor(Obstacle(bowl).at(end.x.numpy())[0])
    assert inside.min() > -dx
    top = [float(end.x[end.x[:, k] > 0.5][:, 2].quantile(0.98)) for k in (0, 1)]
    top += [float(end.x[end.x[:, k] < 0.5][:, 2].quantile(0.98)) for k in (0, 1)]
    assert max(top) - min(top) < dx / 2
    start = model.start().x.mean(0)
    assert float(end.x[:, 2].mean()) < float(start[2]) - 0.1
    assert (end.x.mean(0) - start)[:2].abs().max() < 0.01


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"heights have the shape \(3, 3\), from \[0.0\] to \[1.0\]; expected"):
        ground(np.zeros((3, 3)), [0], [1])
    with pytest.raises(ValueError, match="expected"):
        ground([0.0, 1.0], [1], [0])
