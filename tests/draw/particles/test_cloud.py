"""Clouds to show: shapes, colours, frames, and what mistakes are answered with."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.draw.part.colors import table
from costate.draw.particles.cloud import cloud_of, grid_cloud

T = np.array([0.0, 0.5, 1.0])


def test_flat_particles_stand_upright() -> None:
    """The second axis becomes z; tensors are taken as they are."""
    x = torch.rand(3, 5, 2, requires_grad=True)
    cloud = cloud_of(T, x, np.arange(5))
    assert cloud.flat and np.allclose(cloud.at(1)[:, [0, 2]], x[1].detach().numpy()) and not cloud.at(1)[:, 1].any()
    assert np.array_equal(cloud.colors(2)[[0, 4]], table()[[0, -1]])
    assert np.array_equal(cloud.colors(0), cloud.colors(2))


def test_radius_fills_the_box() -> None:
    """Particles on a lattice of spacing 0.1 nearly touch."""
    lattice = np.stack(np.meshgrid(*[np.arange(10) * 0.1] * 3), -1).reshape(1, -1, 3)
    assert cloud_of([0.0], lattice).radius == pytest.approx(0.05, rel=0.02)


def test_fewer_frames_keep_the_ends() -> None:
    x = np.random.default_rng(0).uniform(size=(101, 4, 3))
    fewer = cloud_of(np.arange(101), x).thinned(11)
    assert fewer.frames == 11 and np.array_equal(fewer.positions, x[::10]) and len(fewer.values) == 1
    assert fewer.frame_at(9.9) == 0 and fewer.frame_at(10.0) == 1


def test_cells_of_a_grid() -> None:
    """Cell (i, j) stands at x = i + 1/2, z = j + 1/2; layers of a grid in 3D are chosen, or their mean."""
    v = np.random.default_rng(0).uniform(size=(3, 4, 5, 6))
    layer = grid_cloud(T, v, 2.0, axis=1, index=3)
    assert np.allclose(layer.numbers(1), v[1, :, 3].ravel())
    assert np.allclose(layer.at(2)[6 * 2 + 1], [5.0, 0.0, 3.0])
    assert np.allclose(grid_cloud(T, v).numbers(2), v[2].mean(2).ravel())
    assert layer.limits == (v[:, :, 3].min(), v[:, :, 3].max())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: cloud_of(T, np.zeros((2, 5, 3))), "for every time"),
        (lambda: cloud_of(T, np.zeros((3, 5, 4))), r"\(K, N, 2\) or \(K, N, 3\)"),
        (lambda: cloud_of(T[::-1], np.zeros((3, 5, 3))), "ascending"),
        (lambda: cloud_of(T, np.full((3, 5, 3), np.nan)), "particle 0 is at .* in frame 0"),
        (lambda: cloud_of(T, np.zeros((3, 5, 3)), np.zeros(4)), "one per particle"),
        (lambda: cloud_of(T, np.zeros((3, 5, 3)), np.zeros(5), limits=(1, 1)), "a lower and a higher"),
        (lambda: grid_cloud(T, np.zeros((3, 5))), "nx, ny"),
    ],
)
def test_mistakes(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
