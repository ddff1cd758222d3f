"""The rasteriser against brute force, and the camera against itself."""

from __future__ import annotations

import numpy as np
import pytest

from costate.draw.camera import Camera, framing
from costate.draw.raster import Buffers, rasterize

WIDTH, HEIGHT = 40, 30


def brute_force(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pixel by pixel and triangle by triangle, with barycentric coordinates from a linear solve."""
    depth, face = np.full((HEIGHT, WIDTH), np.inf), np.full((HEIGHT, WIDTH), -1)
    for y in range(HEIGHT):
        for x in range(WIDTH):
            for f, t in enumerate(corners):
                system = np.vstack([t[:, 0], t[:, 1], np.ones(3)])
                weights = np.linalg.solve(system, [x + 0.5, y + 0.5, 1.0])
                if (weights >= 0).all() and weights @ t[:, 2] < depth[y, x]:
                    depth[y, x], face[y, x] = weights @ t[:, 2], f
    return depth, face


def test_against_brute_force() -> None:
    generator = np.random.default_rng(0)
    corners = generator.uniform(-5, 45, (12, 3, 3))
    depth, face = rasterize(corners, WIDTH, HEIGHT)
    wanted_depth, wanted_face = brute_force(corners)
    assert (face == wanted_face).mean() > 0.998  # a pixel on an edge may fall either way in float32
    agree = face == wanted_face
    covered = agree & (face >= 0)
    assert covered.sum() > 300
    assert depth[covered] == pytest.approx(wanted_depth[covered], abs=1e-3)


def test_triangles_that_cannot_be_drawn_are_left_out() -> None:
    flat = np.array([[[1.0, 1, 0], [10, 10, 0], [20, 20, 0]]])
    lost = np.array([[[1.0, 1, 0], [np.nan, 10, 0], [20, 5, 0]]])
    away = np.array([[[100.0, 100, 0], [110, 100, 0], [100, 120, 0]]])
    for corners in (flat, lost, away, np.zeros((0, 3, 3))):
        assert (rasterize(corners, WIDTH, HEIGHT)[1] == -1).all()


def test_rays_go_through_the_pixels_they_are_for() -> None:
    camera = Camera(np.array([1.0, -3.0, 2.0]), np.array([0.2, 0.1, 0.5]))
    rays = camera.rays(WIDTH, HEIGHT)
    at = camera.project(camera.position + 2.5 * rays, WIDTH, HEIGHT)
    x, y = np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5)
    assert at[..., 0] == pytest.approx(x, abs=1e-4) and at[..., 1] == pytest.approx(y, abs=1e-4)
    assert at[..., 2] == pytest.approx(2.5, abs=1e-5)


@pytest.mark.parametrize("high", [(1.0, 1.0, 1.0), (3.0, 0.1, 0.1), (0.1, 0.1, 2.0), (0.01, 0.01, 0.01)])
@pytest.mark.parametrize("aspect", [0.5, 1.0, 2.0])
def test_framing_sees_the_whole_box_and_not_much_more(high: tuple[float, ...], aspect: float) -> None:
    low = np.array([-0.2, 0.0, 0.0]) * np.array(high)
    corners = np.array([[(low, high)[(k >> i) & 1][i] for i in range(3)] for k in range(8)])
    camera = framing(low, np.array(high), aspect)
    at = camera.project(corners, int(1000 * aspect), 1000) / [1000 * aspect, 1000, 1]
    assert (at[:, :2] > 0).all() and (at[:, :2] < 1).all()
    if max(high) > 0.1:  # it does not go nearer than 10 cm
        assert np.abs(at[:, :2] - 0.5).max() > 0.4


def test_faces_behind_or_too_near_are_left_out() -> None:
    screen = np.array([[5, 5, 0.0], [5, 30, 0], [30, 5, 0], [np.nan, 1, 1]], np.float32)
    for faces, seen in (([0, 1, 2], True), ([0, 2, 1], False), ([0, 1, 3], False)):
        found = Buffers(40, 40)
        found.draw(screen, np.array([faces], np.int32), np.zeros(4, np.int32), np.ones(1, np.float32))
        assert (found.face >= 0).any() == seen
