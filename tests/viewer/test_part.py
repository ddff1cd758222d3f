"""The viewer with a growing part: what it sends is what is seen at that time, in the right colours."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from costate.continuum import Part, wall
from costate.draw.part.colors import table
from costate.viewer.part import PartPlayer, view_part
from costate.viewer.view import Page

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("viser")

LOW, HIGH = 300.0, 900.0


@pytest.fixture(scope="module")
def part() -> Part:
    return wall(length=0.006, height=0.002)


@pytest.fixture(scope="module")
def page(part: Part) -> Iterator[Page]:
    times = np.linspace(0, part.path.duration, 7)
    T = np.broadcast_to(LOW + (HIGH - LOW) * times[:, None] / times[-1], (7, len(part.mesh.nodes)))
    page = view_part(part.mesh, times, T, path=part.path, port=8360, block=False)
    yield page
    page.close()


def sent(page: Page) -> Any:
    """Return the mesh that tabs have."""
    assert isinstance(page.content, PartPlayer)
    scene = trimesh.load(io.BytesIO(page.content._part.glb_data), file_type="glb")
    (mesh,) = scene.geometry.values()
    return mesh


def test_faces_and_colours_of_each_time(page: Page, part: Part) -> None:
    player = page.content
    assert isinstance(player, PartPlayer)
    for k, time in enumerate(player.times):
        player.show(float(time))
        mesh, faces = sent(page), part.mesh.faces()
        shown = faces.exposed(time)
        assert len(mesh.faces) == 2 * shown.sum()
        assert mesh.area / player.growth.metre**2 == pytest.approx(faces.areas[shown].sum(), rel=1e-5)
        place = mesh.visual.uv[:, 0] * len(table()) - 0.5
        assert np.allclose(place, (len(table()) - 1) * k / 6, atol=1e-3)
        assert player._laser.visible == player.growth.spots[1][k]
    with pytest.raises(ValueError, match="a row of numbers"):
        view_part(part.mesh, [0.0], np.zeros((2, 3)), block=False)


def test_it_plays_to_the_end_and_stops(page: Page) -> None:
    player = page.content
    assert isinstance(player, PartPlayer)
    player.show(0.0)
    player.loop, player.speed = False, 16.0
    player.play()
    for _ in range(400):
        if not player.playing:
            break
        player._ended.wait(0.05)
    assert not player.playing and player.time == player.times[-1] and player._frame == 6
