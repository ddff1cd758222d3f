"""Pairs of convex solids: distances against MuJoCo, coal and certificates, degenerate poses, derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from casadi import DM
from tests.gradients import Tolerances, check_gradients

from benchmarks.pairs.cases import BODIES, PAIRS, cases, compare, places, random_poses, solid
from benchmarks.pairs.oracle import CORES
from costate.collision.mesh.hull import Hull, hull_of
from costate.collision.pairs import by_program
from costate.collision.shapes import FAR

pytest.importorskip("mujoco")
pytest.importorskip("coal")

PROGRAMS = [(a, b) for a, b in PAIRS if by_program(solid(BODIES[a]), solid(BODIES[b]))]
"""The others have formulas, and are in tests/sim/scene/test_shapes.py."""
QUICK = [("box", "box"), ("box", "cylinder"), ("ellipsoid", "hull")]
"""Pairs whose derivatives are part of the usual test run; the study takes all of them."""
EXACT = 1e-6
"""What a distance may be off [m]: MuJoCo ends its search for round shapes there, and keeps meshes in single precision."""


def check(a: str, b: str, count: int, not_least: float) -> None:
    """Random, thin, tiny, large, aligned, centred and touching: distances where apart; overlapping the least depth, but for a share
    where one of the solids is round."""
    deeper = []
    for kind, body_a, body_b, x, y in cases(a, b, count, seed=1):
        found = compare(body_a, body_b, x, y)
        assert found.error.max() < EXACT, kind
        deeper.append(found.deeper)
    overlapping = np.concatenate(deeper)
    assert len(overlapping) > count / 10
    assert np.mean(overlapping > EXACT) <= (0 if a in CORES and b in CORES else not_least)


@pytest.mark.parametrize(("a", "b"), PROGRAMS, ids=lambda k: k)
def test_distance_is_that_of_others(a: str, b: str) -> None:
    check(a, b, 100, not_least=0.05)


@pytest.mark.study
@pytest.mark.parametrize(("a", "b"), PROGRAMS, ids=lambda k: k)
def test_distance_is_that_of_others_in_10000_poses(a: str, b: str) -> None:
    check(a, b, 10_000, not_least=0.01)


def test_distance_in_float32() -> None:
    """Apart and overlapping, what single precision can say."""
    bodies = BODIES["sphere"], BODIES["hull"]
    poses = [torch.tensor(p) for p in random_poses(np.random.default_rng(5), *bodies, 1000)]
    fine, rough = (
        places(*bodies, *(p.to(kind) for p in poses))[..., 0].amin(-1) for kind in (torch.float64, torch.float32)
    )
    assert (fine - rough).abs().max() < EXACT


STILL = [1.0, 0, 0, 0]
TURNED = [np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)]


def one(a: str, b: str, x: list[float], y: list[float]) -> np.ndarray:
    return places(BODIES[a], BODIES[b], *(torch.tensor(p, dtype=torch.float64) for p in (x, y))).numpy()


DEGENERATE = {
    "faces aligned, apart": ([0, 0, 0.2, *STILL], 0.04, 4),
    "faces aligned, overlapping": ([0, 0, 0.159, *STILL], -0.001, 4),
    "faces parallel, turned": ([0, 0, 0.159, *TURNED], -0.001, 4),
    "faces aligned, touching": ([0, 0, 0.16, *STILL], 0.0, 4),
    "edge along edge": ([0.2, 0, 0.16, *STILL], 0.0, 2),
    "edge beside edge": ([0.24, 0, 0.19, *STILL], 0.05, 2),
    "corner on corner": ([0.2, 0.3, 0.16, *STILL], 0.0, 1),
    "corner beside corner": ([0.21, 0.32, 0.18, *STILL], 0.03, 1),
    "centres coincide": ([0, 0, 0, *STILL], -0.16, 4),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_equal_boxes_in_degenerate_poses(case: str) -> None:
    """Known distances of boxes 0.2 x 0.3 x 0.16, and how many places share them at least."""
    x, expected, count = DEGENERATE[case]
    gaps = one("box", "box", x, [0, 0, 0, *STILL])[:, 0]
    assert abs(gaps.min() - expected) < 1e-7
    assert (np.abs(gaps - expected) < 1e-6).sum() >= count


def test_manifold_of_stacked_boxes_spans_the_face() -> None:
    found = one("box", "box", [0, 0, 0.1599, *STILL], [0, 0, 0, *STILL])
    corners = {(round(float(x), 6), round(float(y), 6)) for x, y in found[:, 1:3]}
    assert corners == {(sx * 0.1, sy * 0.15) for sx in (-1, 1) for sy in (-1, 1)}
    assert np.allclose(found[:, 4:], [0, 0, 1])


@pytest.mark.parametrize(
    ("tilt", "count"), [(0.0, 4), (np.pi / 2, 2), (0.5, 1)], ids=["standing", "lying", "on its rim"]
)
def test_cylinder_on_a_box(tilt: float, count: int) -> None:
    """Known heights: a cylinder of radius 0.1 and length 0.24 touches a box 0.16 high."""
    reach = 0.12 * np.cos(tilt) + 0.1 * np.sin(tilt)
    y = [0, 0, 0.08 + reach - 1e-4, np.cos(tilt / 2), 0, np.sin(tilt / 2), 0]
    found = one("box", "cylinder", [0, 0, 0, *STILL], y)
    deepest = np.abs(found[:, 0] + 1e-4) < 1e-8
    assert deepest.sum() >= count
    assert np.allclose(found[deepest, 4:], [0, 0, -1], atol=1e-9)


def check_smooth_poses(a: str, b: str, count: int, options: dict) -> None:
    """All numbers of all places that are there, in both poses, apart and overlapping; at poses where the features do not change."""
    bodies = BODIES[a], BODIES[b]
    x, y = (torch.tensor(p) for p in random_poses(np.random.default_rng(3), *bodies, 10 * count))
    found = places(*bodies, x, y)[..., 0]
    checked = 0
    for k in range(10 * count):
        there = found[k] < FAR / 2

        def f(u: torch.Tensor, v: torch.Tensor, there: torch.Tensor = there) -> torch.Tensor:
            return places(*bodies, u, v)[..., there, :]

        try:
            check_gradients(f, (x[k], y[k]), names=("x", "y"), step=1e-5, directions=1, **options)
        except AssertionError as error:
            if not any(word in str(error) for word in ("are uncertain", "on a kink")):
                raise
            continue
        checked += 1
        if checked == count:
            break
    assert checked == count


@pytest.mark.parametrize(("a", "b"), QUICK, ids=lambda k: k)
def test_gradients(a: str, b: str) -> None:
    check_smooth_poses(a, b, 6, {"float32": False, "tolerances": Tolerances(finite_difference=1e-5)})


@pytest.mark.study
@pytest.mark.parametrize(("a", "b"), PROGRAMS, ids=lambda k: k)
def test_gradients_of_every_pair(a: str, b: str) -> None:
    check_smooth_poses(a, b, 40, {"float32": False, "tolerances": Tolerances(finite_difference=1e-5)})


def test_hull_of_a_cube_is_a_box() -> None:
    """Six faces, eight corners; and as a pair it is the box."""
    cube = hull_of(np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.15, 0.15) for z in (-0.08, 0.08)]))
    assert isinstance(cube, Hull)
    assert len({tuple(np.round(np.array(DM(n)).ravel(), 6)) for n in cube.normals}) == 6
    assert all(len(p) == 4 for p in cube.polygons)


def test_large_hulls_are_simplified_and_say_so() -> None:
    ball = np.random.default_rng(1).normal(size=(300, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="contact uses 32 of them"):
        hull = hull_of(ball)
    assert len(hull.corners) == 32
