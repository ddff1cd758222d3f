"""Generated parts: their sizes, their paths, and births in the order of the path."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from costate.continuum import EVER, Part, Plate, Process, block, cylinder, published_size, wall

PROCESS = Process(speed=0.008, travel=0.1, dwell=1.5, cooling=4.0)
PLATE = Plate(thickness=0.002, margin=0.003)

PARTS: dict[str, Callable[[], Part]] = {
    "wall": lambda: wall(0.02, 0.004, 0.003, plate=PLATE, process=PROCESS),
    "wall with two elements per layer": lambda: wall(0.02, 0.004, 0.001, layer=0.002, plate=PLATE, process=PROCESS),
    "block": lambda: block((0.008, 0.006, 0.003), plate=PLATE, process=PROCESS),
    "block with wide tracks": lambda: block((0.008, 0.006, 0.003), hatch=0.002, plate=None, process=PROCESS),
    "cylinder": lambda: cylinder(0.006, 0.003, plate=PLATE, process=PROCESS),
    "cylinder by a spiral": lambda: cylinder(0.006, 0.003, pattern="spiral", plate=PLATE, process=PROCESS),
    "tube": lambda: cylinder(0.006, 0.004, inner=0.004, plate=PLATE, process=PROCESS),
    "tube by a spiral": lambda: cylinder(0.006, 0.004, inner=0.003, pattern="spiral", plate=None, process=PROCESS),
}


@pytest.fixture(scope="module", params=PARTS)
def part(request: pytest.FixtureRequest) -> Part:
    return PARTS[request.param]()


def test_length_is_speed_times_time(part: Part) -> None:
    path = part.path
    on, lengths, times = path.on[1:], path.lengths, np.diff(path.times)
    np.testing.assert_allclose(lengths[on], PROCESS.speed * times[on], rtol=1e-9)
    moved = ~on & (lengths > 0)
    np.testing.assert_allclose(lengths[moved], PROCESS.travel * times[moved], rtol=1e-9)
    assert path.length_on == pytest.approx(PROCESS.speed * path.time_on, rel=1e-12)
    layers = part.layer.max() + 1
    assert times[~on & (lengths == 0)].tolist() == pytest.approx([PROCESS.dwell] * (layers - 1) + [PROCESS.cooling])


def test_layers_are_born_one_after_the_other_and_the_plate_before(part: Part) -> None:
    mesh, layer = part.mesh, part.layer
    assert (mesh.birth[layer < 0] == EVER).all() and (mesh.centres[layer < 0, 2] < 0).all()
    assert (np.diff(layer) >= 0).all()  # in the order of births
    starts = [mesh.birth[layer == k].min() for k in range(layer.max() + 1)]
    ends = [mesh.birth[layer == k].max() for k in range(layer.max() + 1)]
    assert all(end + PROCESS.dwell < start for end, start in zip(ends[:-1], starts[1:], strict=True))
    height = mesh.nodes[:, 2].max() / (layer.max() + 1)
    np.testing.assert_array_equal(np.ceil(mesh.centres[:, 2] / height)[layer >= 0], layer[layer >= 0] + 1)


def test_at_its_birth_the_laser_is_on_above_the_element_and_nowhere_nearer_in_that_layer(part: Part) -> None:
    mesh, path = part.mesh, part.path
    built = part.layer >= 0
    spot, on = path.at(mesh.birth[built] - 1e-9)  # just before: a track may end at this moment
    again, after = path.at(mesh.birth[built] + 1e-9)
    assert (on | after).all()
    tops = mesh.nodes[mesh.elements[built]][:, :, 2].max(axis=1)
    distance = np.linalg.norm((np.where(on[:, None], spot, again) - mesh.centres[built])[:, :2], axis=1)
    # An independent search: the path, sampled finely.
    times = np.arange(0.0, path.times[-1], 0.01)
    samples, lit = path.at(times)
    for k in np.random.default_rng(0).choice(np.count_nonzero(built), 40):
        level = samples[lit & (np.abs(samples[:, 2] - spot[k, 2]) < 1e-9)]
        nearest = np.linalg.norm(level[:, :2] - mesh.centres[built][k, :2], axis=1).min()
        assert distance[k] <= nearest + 1e-9
        assert spot[k, 2] >= tops[k] - 1e-12


def test_sizes_of_a_wall_and_its_plate() -> None:
    part = PARTS["wall"]()
    nodes = part.mesh.nodes
    assert nodes.min(axis=0) == pytest.approx([-0.013, -0.0045, -0.002]) and nodes.max(axis=0) == pytest.approx(
        [0.013, 0.0045, 0.004]
    )
    volumes = part.mesh.volumes
    assert volumes[part.layer >= 0].sum() == pytest.approx(0.02 * 0.003 * 0.004, rel=1e-12)
    assert volumes[part.layer < 0].sum() == pytest.approx(0.026 * 0.009 * 0.002, rel=1e-12)
    assert part.path.length_on == pytest.approx(4 * 0.02)  # one bead per layer


def test_a_wall_is_built_forth_and_back() -> None:
    part = PARTS["wall"]()
    for k in range(4):
        x = part.mesh.centres[part.layer == k, 0]
        assert (np.diff(x) * (-1) ** k >= 0).all()


def test_a_block_is_filled_in_alternating_directions() -> None:
    path = PARTS["block"]().path
    tracks = np.diff(path.positions, axis=0)[path.on[1:]]
    level = np.round(path.positions[1:][path.on[1:], 2] / 0.001).astype(int) - 1
    assert (tracks[level % 2 == 0, 1] == 0).all() and (tracks[level % 2 == 1, 0] == 0).all()
    signs = np.sign(tracks[level == 0, 0])
    assert (signs[1:] == -signs[:-1]).all()
    assert path.length_on == pytest.approx(6 * 0.008 + 8 * 0.006 + 6 * 0.008)


@pytest.mark.parametrize(("name", "inner", "height"), [("cylinder", 0.0, 0.003), ("tube", 0.004, 0.004)])
def test_volume_of_a_cylinder_is_that_of_its_polygon_and_tends_to_the_round_one(
    name: str, inner: float, height: float
) -> None:
    part = PARTS[name]()
    nodes = part.mesh.nodes[np.unique(part.mesh.elements[part.layer >= 0])]
    outside = np.isclose(np.hypot(nodes[:, 0], nodes[:, 1]), 0.006, rtol=1e-12) & (nodes[:, 2] == 0)
    n = np.count_nonzero(outside)
    polygon = n / 2 * np.sin(2 * np.pi / n) * (0.006**2 - inner**2) * height
    assert part.mesh.volumes[part.layer >= 0].sum() == pytest.approx(polygon, rel=1e-12)
    assert polygon == pytest.approx(np.pi * (0.006**2 - inner**2) * height, rel=0.01)


def test_rings_and_spirals_cover_the_same_area() -> None:
    """Length times spacing is the area, as for every dense pattern; a spiral runs along its edges twice."""
    rings, spiral = PARTS["cylinder"]().path, PARTS["cylinder by a spiral"]().path
    area = 3 * np.pi * 0.006**2
    assert rings.length_on * 0.001 == pytest.approx(area, rel=0.02)
    assert area < spiral.length_on * 0.001 < 1.25 * area
    radius = np.hypot(spiral.positions[:, 0], spiral.positions[:, 1])
    assert radius.max() == pytest.approx(0.0055) and radius.min() == pytest.approx(0.0005)


def test_the_published_size() -> None:
    part = published_size()
    assert (len(part.mesh.nodes), len(part.mesh.elements)) == (18_438, 15_070)
    assert part.path.times[-1] == pytest.approx(323.45 + 10, abs=2e-3)
    assert part.path.at(323.46)[1] == False and part.path.at(323.0)[1] == True  # noqa: E712


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wall(length=-1.0), "length is -1.0; expected a number above 0"),
        (lambda: block(element=0.0), "element is 0.0; expected a number above 0"),
        (lambda: block(hatch=0.0), "hatch is 0.0"),
        (lambda: cylinder(0.005, inner=0.006), "inner is 0.006 m and radius 0.005 m"),
        (lambda: cylinder(pattern="zigzag"), "pattern is 'zigzag'; expected one of rings, spiral"),
        (lambda: cylinder(plate=Plate(margin=(0.001, 0.002))), "the plate of a cylinder is round"),
        (lambda: Plate(margin=-1.0), "margin is -1.0; expected a width of 0 m or more"),
        (lambda: Process(speed=0.0), "speed is 0.0"),
        (lambda: Process(dwell=-1.0), "dwell is -1.0 and cooling 0.0; expected times of 0 s or more"),
    ],
)
def test_what_is_wrong_is_said(make: Callable[[], Part], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
