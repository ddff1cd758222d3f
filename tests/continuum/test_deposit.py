"""Births of a mesh of one's own along a path of one's own."""

from __future__ import annotations

import numpy as np
import pytest

from costate.continuum import EVER, ToolPath, born_along, wall

WALL = wall(0.01, 0.002, 0.001)


def test_a_generated_part_is_found_again_from_its_mesh_and_path() -> None:
    mesh = WALL.mesh
    shuffled = mesh.elements[np.random.default_rng(0).permutation(len(mesh.elements))]
    again = born_along(mesh.nodes, shuffled, WALL.path)
    births = {tuple(e): t for e, t in zip(mesh.elements.tolist(), mesh.birth.tolist(), strict=True)}
    assert [births[tuple(e)] for e in again.elements.tolist()] == pytest.approx(again.birth.tolist())


def test_of_two_passes_the_first_counts() -> None:
    path = WALL.path
    twice = ToolPath(
        np.concatenate([path.times, path.times + path.times[-1] + 1]),
        np.concatenate([path.positions, path.positions]),
        np.concatenate([path.on, path.on]),
    )
    again = born_along(WALL.mesh.nodes, WALL.mesh.elements, twice)
    np.testing.assert_allclose(again.birth, WALL.mesh.birth, rtol=1e-12)


def test_what_lies_below_the_ground_is_there() -> None:
    mesh = born_along(WALL.mesh.nodes, WALL.mesh.elements, WALL.path, ground=0.001)
    assert (mesh.birth == EVER).sum() == (WALL.layer < 1).sum()


def test_what_is_wrong_is_said() -> None:
    nodes, elements, path = WALL.mesh.nodes, WALL.mesh.elements, WALL.path
    low = ToolPath(path.times, path.positions * [1, 1, 0.5], path.on)
    with pytest.raises(
        ValueError, match=r"element \d+ reaches up to 0.002 m; the highest heated layer of the path is at 0.001 m"
    ):
        born_along(nodes, elements, low)
    with pytest.raises(ValueError, match=r"from the path of its layer, beyond the reach of 0.001 m"):
        born_along(
            nodes, elements, ToolPath(path.times, path.positions + np.array([0, 0.002, 0]), path.on), reach=0.001
        )
    with pytest.raises(ValueError, match="never on"):
        born_along(nodes, elements, ToolPath(path.times, path.positions, np.zeros(len(path.on), dtype=bool)))
    climbing = ToolPath(
        path.times, path.positions + np.linspace(0, 1e-3, len(path.times))[:, None] * [0, 0, 1], path.on
    )
    with pytest.raises(ValueError, match=r"ends at row \d+ of the path climbs by .* m; expected level layers"):
        born_along(nodes, elements, climbing)
