"""Marks: tubes that follow their paths."""

from __future__ import annotations

import numpy as np
import pytest

from costate.draw.marks import Trails


def test_trails_are_tubes_around_their_paths() -> None:
    turn = np.linspace(0, 4, 400)
    paths = np.stack(
        [np.stack([np.cos(turn), np.sin(turn), 0.2 * turn], -1), np.stack([turn, 0 * turn, 0 * turn], -1)], 1
    )
    tube = Trails(paths, 0.01).at(399)
    near = np.linalg.norm(tube.points[:, None] - paths.reshape(1, -1, 3), axis=-1).min(1)
    assert near.max() == pytest.approx(0.01, rel=0.05)
    corners, normals = tube.corners, tube.normals[tube.faces]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("fi,fi->f", outward, normals.mean(1)) >= -1e-12).all()  # no face is turned inside out
    short = Trails(paths, 0.01).at(100)
    assert np.linalg.norm(short.points - paths[100][:, None].repeat(1, 1)[0], axis=-1).min() < 0.011
