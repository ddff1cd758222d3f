"""The viewer with particles: what it sends is where they are at that time, in the right colours."""

from __future__ import annotations

import numpy as np
import pytest

from costate.draw.part.colors import table
from costate.viewer.particles import ParticlePlayer, view_particles

pytest.importorskip("viser")


def test_points_and_colours() -> None:
    times = np.linspace(0, 1, 5)
    x = np.random.default_rng(0).uniform(size=(5, 40, 3))
    values = np.linspace(0, 1, 5)[:, None] * np.ones(40)
    page = view_particles(times, x, values, title="phase", port=8390, block=False)
    try:
        player = page.content
        assert isinstance(player, ParticlePlayer)
        for k in (0, 3, 4):
            player.show(float(times[k]))
            assert np.allclose(player._points.points, player.cloud.metre * x[k], atol=1e-6)
        assert (np.asarray(player._points.colors) == table()[-1]).all()
        assert player._points.point_size == pytest.approx(2 * player.cloud.metre * player.cloud.radius)
    finally:
        page.close()
