"""Pictures of growing parts: the right faces in the right colours, at the right place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from costate.continuum import Part, cylinder, wall
from costate.draw.camera import Camera
from costate.draw.part.growth import growth_of
from costate.draw.part.still import _divided, laser_at, part_at, render_part


@pytest.fixture(scope="module")
def part() -> Part:
    return wall(length=0.006, height=0.002)


def test_patches_cover_the_faces_that_are_exposed() -> None:
    part = cylinder(radius=0.004, height=0.002)
    faces = part.mesh.faces()
    for time in (0.0, 0.3 * part.path.duration, part.path.duration):
        growth = growth_of(part.mesh, [time], np.zeros((1, len(part.mesh.nodes))))
        soup = part_at(growth, 0)
        a, b, c = np.moveaxis(soup.corners.astype(float), 1, 0)
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2 / growth.metre**2
        assert area == pytest.approx(faces.areas[faces.exposed(time)].sum(), rel=1e-5)
        outward = np.einsum("fk,fk->f", np.cross(b - a, c - a), soup.normals[soup.faces[:, 0]])
        assert (outward > 0).all()


def test_numbers_are_bilinear_between_corners() -> None:
    corners = np.array([[[0.0], [1.0], [3.0], [2.0]]])  # x + 2 y on the unit square
    patches = _divided(corners, 4)
    assert patches.shape == (16, 4, 1)
    x, y = np.mgrid[:4, :4] / 4
    assert np.allclose(patches[:, 0, 0], (x + 2 * y).ravel()) and np.allclose(
        patches[:, 2, 0], (x + 2 * y + 0.75).ravel()
    )


def test_the_hot_end_is_yellow_and_the_cold_one_blue(part: Part, tmp_path: Path) -> None:
    x = part.mesh.nodes[:, 0]
    camera = Camera(np.array([0.0, -0.03, 0.01]), np.zeros(3), np.radians(35.0))
    values = np.stack([x, -x])
    files = [
        render_part(
            part.mesh, [0.0, 99.0], values, tmp_path / f"{k}.png", camera=camera, frame=k, size=(160, 120), unit="m"
        )
        for k in (0, 1)
    ]
    first, last = (np.asarray(Image.open(file)).astype(int) for file in files)
    assert first.shape == (120, 160, 3)
    row = 64  # through the plate, which is there from the beginning
    for picture, sign in ((first, 1), (last, -1)):
        warmth = (picture[row, :, 0] - picture[row, :, 2])[[50, 80, 110]]
        assert (sign * np.diff(warmth) > 40).all()
    assert (np.abs(last - first).max(-1)[20:60, 50:110] > 30).sum() > 300  # the wall has grown


def test_the_laser_is_drawn_where_it_is_on(part: Part) -> None:
    times = np.linspace(0, part.path.duration, 9)
    growth = growth_of(part.mesh, times, np.zeros((9, len(part.mesh.nodes))), path=part.path)
    spots, on = growth.spots
    assert on.any() and not on.all()
    for k in range(9):
        beam = laser_at(growth, k)
        assert (beam is not None) == on[k]
        if beam is not None:
            lowest = beam.points[beam.points[:, 2].argmin()]
            assert np.allclose(lowest, growth.metre * spots[k], atol=1e-6)


def test_films_and_mistakes(part: Part, tmp_path: Path) -> None:
    times = np.linspace(0, part.path.duration, 4)
    values = np.broadcast_to(times[:, None], (4, len(part.mesh.nodes)))
    film = render_part(part.mesh, times, values, tmp_path / "film.gif", size=(80, 60), seconds=0.4, fps=10)
    assert getattr(Image.open(film), "n_frames", 1) == 4
    with pytest.raises(ValueError, match="theme"):
        render_part(part.mesh, times, values, tmp_path / "film.gif", theme="grey")
    with pytest.raises(ValueError, match="frame is 4; expected one of 4"):
        render_part(part.mesh, times, values, tmp_path / "film.png", frame=4)
