"""What is shown of a growing part: checks of what is given, frames, colours and the laser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from costate.continuum import HexMesh, Part, wall
from costate.draw.camera import framing_points
from costate.draw.part.colors import table
from costate.draw.part.growth import growth_of

FRAMES = 12


@pytest.fixture(scope="module")
def part() -> Part:
    return wall(length=0.006, height=0.002)


def numbers(mesh: HexMesh, times: np.ndarray) -> np.ndarray:
    """Numbers that grow with time and height."""
    return 300 + 10 * times[:, None] + 1e4 * mesh.nodes[:, 2]


@pytest.fixture(scope="module")
def times(part: Part) -> np.ndarray:
    return np.linspace(0, part.path.times[-1], FRAMES)


def test_nodes_that_are_not_born_are_not_looked_at(part: Part, times: np.ndarray) -> None:
    values = numbers(part.mesh, times)
    born = part.mesh.node_birth <= times[:, None]
    growth = growth_of(part.mesh, torch.tensor(times), torch.tensor(np.where(born, values, np.nan)))
    assert growth.limits == (values[born].min(), values[born].max())
    assert np.array_equal(growth.values[born], values[born])
    assert (growth.values[~born] == growth.limits[0]).all()


def test_thinned_histories_keep_their_ends(part: Part, times: np.ndarray) -> None:
    growth = growth_of(part.mesh, times, numbers(part.mesh, times))
    few = growth.thinned(5)
    assert few.frames == 5 and (few.times[0], few.times[-1]) == (times[0], times[-1])
    assert all(np.array_equal(few.values[k], growth.values[list(times).index(t)]) for k, t in enumerate(few.times))
    assert growth.thinned(FRAMES) is growth


def test_frames_colours_and_spots(part: Part, times: np.ndarray) -> None:
    growth = growth_of(part.mesh, times, numbers(part.mesh, times), limits=(0, 1), path=part.path)
    assert (growth.colors(0) == table()[-1]).all()
    assert growth.frame_at(-1.0) == 0 and growth.frame_at(times[3]) == 3 and growth.frame_at(times[4] - 1e-6) == 3
    spots, on = growth.spots
    assert on.any() and not on[-1]  # it cools at the end
    assert (np.abs(spots[on] - part.mesh.nodes.mean(0)) < np.ptp(part.mesh.nodes, axis=0)).all()
    assert not growth_of(part.mesh, times, numbers(part.mesh, times)).spots[1].any()


@pytest.mark.parametrize("size", [1e-4, 0.02, 0.03, 3.0, 40.0])
def test_drawings_of_parts_of_every_size_are_about_as_large(size: float, part: Part) -> None:
    mesh = HexMesh(
        part.mesh.nodes * size / np.linalg.norm(np.ptp(part.mesh.nodes, axis=0)), part.mesh.elements, part.mesh.birth
    )
    growth = growth_of(mesh, [0.0], np.zeros((1, len(mesh.nodes))))
    assert growth.size == pytest.approx(size)
    assert 0.3 * (1 - 1e-9) <= growth.metre * size < 3 * (1 + 1e-9)
    assert np.log10(growth.metre) == pytest.approx(round(np.log10(growth.metre)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": np.zeros((3, 4))}, r"values \(3, 4\); expected \(K,\) and \(K, "),
        ({"times": [0.0, 0.0]}, "finite and ascending"),
        ({"limits": (2.0, 1.0)}, "expected a lower and a higher number"),
        ({"values": "nan"}, "value of node 0 at 0 s is nan"),
    ],
)
def test_mistakes_are_named(part: Part, changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"times": [0.0, 1.0], "values": np.zeros((2, len(part.mesh.nodes))), **changed}
    if isinstance(given["values"], str):
        given["values"] = np.full((2, len(part.mesh.nodes)), np.nan)
    with pytest.raises(ValueError, match=message):
        growth_of(part.mesh, **given)


def test_a_part_that_is_never_there_is_refused(part: Part) -> None:
    later = HexMesh(part.mesh.nodes, part.mesh.elements, np.full(len(part.mesh.elements), 5.0))
    with pytest.raises(ValueError, match="no element is alive up to 1 s; the first is born at 5 s"):
        growth_of(later, [1.0], np.zeros((1, len(later.nodes))))


def test_whoever_sees_the_outline_sees_all(part: Part, times: np.ndarray) -> None:
    growth = growth_of(part.mesh, times, numbers(part.mesh, times), path=part.path)
    spots, on = growth.spots
    every = np.concatenate([part.mesh.nodes, spots[on] + np.array([0, 0, growth.laser_length])])
    assert len(growth.outline) < len(every) / 10
    camera = framing_points(growth.metre * growth.outline, 1.5)
    x, y, depth = camera.project(growth.metre * every, 300, 200).T
    assert x.min() > 0 and x.max() < 300 and y.min() > 0 and y.max() < 200 and depth.min() > 0
    assert np.ptp(x) > 0.85 * 300 or np.ptp(y) > 0.85 * 200  # and no more than that
