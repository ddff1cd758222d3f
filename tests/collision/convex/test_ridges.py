"""Deep overlap of round solids: the least depth against directions tried all over the sphere, and against other engines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.gradients import Tolerances, check_gradients

from benchmarks.pairs.cases import compare, places, quaternions
from benchmarks.pairs.oracle import Body, rotation, separation
from costate.collision.convex.axes import sphere_points

Array = NDArray[np.float64]
RODS = {
    "capsule": Body("capsule", np.array([0.05, 0.3])),
    "short capsule": Body("capsule", np.array([0.1, 0.1])),
    "cylinder": Body("cylinder", np.array([0.05, 0.3])),
    "disk": Body("cylinder", np.array([0.2, 0.02])),
    "box": Body("box", np.array([0.2, 0.1, 0.3])),
}
EGGS = [Body("ellipsoid", np.array(s)) for s in ([0.1, 0.15, 0.2], [0.2, 0.2, 0.05])]
POSES = 150


def deep_poses(seed: int, egg: Body, count: int) -> tuple[Array, Array]:
    """Draw poses in which a solid is stuck in an ellipsoid, its middle well inside."""
    random = np.random.default_rng(seed)
    at = random.normal(size=(count, 3)) * (0.3 * egg.sizes.min() + 0.02)
    x, y = (np.concatenate([p, quaternions(random, count)], 1) for p in (at, 0 * at))
    return x, y


def tried(a: Body, b: Body, x: Array, y: Array, starts: Array) -> Array:
    """Return the largest separation (poses,) that steps in eight ways, halved when none is better, find from directions
    (poses, 3)."""
    n, reach = starts.copy(), np.full((len(x), 1, 1), 0.06)
    best = separation(a, b, x, y, n)
    for turn in range(60):
        side = np.cross(n, np.where(np.abs(n[:, :1]) < 0.7, [[1.0, 0, 0]], [[0, 1.0, 0]]))
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        angles = np.arange(8) * np.pi / 4 + turn
        ways = np.cos(angles)[:, None] * side[:, None] + np.sin(angles)[:, None] * np.cross(n, side)[:, None]
        trials = n[:, None] + reach * ways
        trials /= np.linalg.norm(trials, axis=2, keepdims=True)
        values = separation(a, b, x[:, None], y[:, None], trials)
        k = values.argmax(1)
        values, trials = values[np.arange(len(x)), k], trials[np.arange(len(x)), k]
        better = values > best
        n[better], best = trials[better], np.maximum(values, best)
        reach[~better] /= 2
    return best


def least_depth(a: Body, b: Body, x: Array, y: Array) -> Array:
    """Return the largest separation (poses,) known: from 1,500 directions all over the sphere and around the edges of a, the best
    of which are improved."""
    ways = sphere_points(1500)
    values = separation(a, b, x[:, None], y[:, None], ways[None])
    best = values.max(1)
    for _ in range(6):
        starts = ways[values.argmax(1)]
        best = np.maximum(best, tried(a, b, x, y, starts))
        values[starts @ ways.T > 0.97] = -np.inf
    angles = np.linspace(0, 2 * np.pi, 2001)
    for axis in range(3) if a.kind == "box" else [2]:
        edge, side = rotation(x[:, 3:])[:, :, axis], rotation(x[:, 3:])[:, :, axis - 1]
        around = np.cos(angles)[:, None] * side[:, None] + np.sin(angles)[:, None] * np.cross(edge, side)[:, None]
        best = np.maximum(best, separation(a, b, x[:, None], y[:, None], around).max(1))
    return best


@pytest.mark.parametrize("rod", RODS)
def test_least_depth(rod: str) -> None:
    """No direction overlaps less than the one found, by more than a micrometre, and the gap is the depth along it."""
    a = RODS[rod]
    for seed, b in enumerate(EGGS):
        x, y = deep_poses(seed, b, POSES)
        found = places(a, b, torch.tensor(x), torch.tensor(y)).numpy()
        first = found[np.arange(POSES), found[..., 0].argmin(1)]
        assert (first[:, 0] < 0).mean() > 0.95
        np.testing.assert_allclose(separation(a, b, x, y, first[:, 4:]), first[:, 0], atol=1e-9)
        assert (least_depth(a, b, x, y) - first[:, 0]).max() < 1e-6


def test_least_depth_of_other_engines() -> None:
    """MuJoCo and coal know of no direction that overlaps less."""
    pytest.importorskip("mujoco")
    pytest.importorskip("coal")
    for rod in ("capsule", "cylinder"):
        found = compare(RODS[rod], EGGS[1], *deep_poses(5, EGGS[1], 40))
        assert found.deeper.max() < 1e-6


@pytest.mark.parametrize("rod", ["capsule", "cylinder"])
def test_gradients(rod: str) -> None:
    """Gap, point and normal of the deepest point, on the ridge and off it."""
    bodies = RODS[rod], EGGS[0]
    x, y = (torch.tensor(p) for p in deep_poses(3, EGGS[0], 6))
    deepest = places(*bodies, x, y)[..., 0].argmin(-1)
    checked = 0
    for k in range(6):

        def f(u: torch.Tensor, v: torch.Tensor, k: int = k) -> torch.Tensor:
            return places(*bodies, u, v)[..., deepest[k], :]

        try:
            options = {"float32": False, "tolerances": Tolerances(finite_difference=1e-5)}
            check_gradients(f, (x[k], y[k]), names=("x", "y"), step=1e-5, directions=1, second_order=True, **options)
            checked += 1
        except AssertionError as error:
            if not any(word in str(error) for word in ("are uncertain", "on a kink", "do not settle")):
                raise
    assert checked >= 4
