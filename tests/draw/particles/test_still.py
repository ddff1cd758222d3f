"""Pictures and films of particles and grids: the right colours at the right place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from costate.draw.part.colors import table
from costate.draw.particles.cloud import cloud_of
from costate.draw.particles.still import _ball, balls_at, render_grid, render_particles


@pytest.mark.parametrize("count", [10, 1000])
def test_balls_are_closed_and_face_outward(count: int) -> None:
    """The volume of what is drawn, by the divergence theorem, is nearly that of the balls."""
    cloud = cloud_of([0.0], np.random.default_rng(0).uniform(size=(1, count, 3)), radius=0.1)
    soup = balls_at(cloud, 0, _ball(count))
    a, b, c = np.moveaxis(soup.corners.astype(float), 1, 0)
    volume = np.einsum("fk,fk->f", a, np.cross(b, c)).sum() / 6 / cloud.metre**3
    share = volume / (count * 4 / 3 * np.pi * 0.1**3)
    assert 0.6 < share < 1.0


def test_a_picture_of_two_particles(tmp_path: Path) -> None:
    """Flat particles are seen from the front: the first left below, the second right above, in the colours of their numbers."""
    x = np.array([[[0.0, 0.0], [1.0, 1.0]]])
    path = render_particles([0.0], x, tmp_path / "two.png", [0.0, 1.0], radius=0.1, size=(300, 300))
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)
    dark = np.abs(image - table()[0]).sum(-1) < 90
    assert dark.any() and np.argwhere(dark)[:, 0].mean() > 200 and np.argwhere(dark)[:, 1].mean() < 100


def test_a_picture_of_a_grid(tmp_path: Path) -> None:
    """The first axis goes to the right, the second upwards."""
    v = np.zeros((1, 4, 2))
    v[0, 3, 1] = 1.0
    path = render_grid([0.0], v, tmp_path / "grid.png", size=(400, 200))
    image = np.asarray(Image.open(path)).astype(int)
    bright = np.argwhere((image[:, :350] == table()[-1]).all(-1))
    dark = np.argwhere((image[:, :350] == table()[0]).all(-1))
    assert bright[:, 0].max() < dark[:, 0].max() and bright[:, 1].min() > dark[:, 1].min()
    assert len(dark) == pytest.approx(7 * len(bright), rel=0.02)


def test_a_film(tmp_path: Path) -> None:
    x = np.random.default_rng(0).uniform(size=(4, 50, 3))
    path = render_particles(np.arange(4) / 10, x, tmp_path / "film.gif", fps=10, size=(80, 60))
    with Image.open(path) as film:
        assert film.size == (80, 60) and getattr(film, "n_frames", 1) == 3
    with pytest.raises(ValueError, match="expected one of 4"):
        render_particles(np.arange(4), x, tmp_path / "still.png", frame=4)
