"""Recordings in the viewer: surfaces that change their shape are where they are at that time."""

from __future__ import annotations

import numpy as np
import pytest

from costate.continuum import ClothModel, sheet
from costate.draw.cloth.motion import record_cloth
from costate.viewer.player import Player
from costate.viewer.view import view

pytest.importorskip("viser")


def test_cloth_moves() -> None:
    model = ClothModel([sheet((3, 4), (0.2, 0.3))], dt=0.01)
    x = model.start().x.numpy() + np.random.default_rng(0).uniform(0, 0.1, size=(5, 12, 3))
    times = np.linspace(0, 1, 5)
    page = view(record_cloth(model, times, x), port=8394, block=False)
    try:
        player = page.content
        assert isinstance(player, Player)
        for k in (0, 3, 4):
            player.show(float(times[k]))
            assert np.allclose(player._surfaces[0]._node.vertices, x[k], atol=1e-6)
    finally:
        page.close()
