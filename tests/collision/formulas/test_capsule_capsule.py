"""Capsules whose axes are nearly parallel, or nearly meet: float32 against float64, and distances against a search."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.gradients import Tolerances, check_gradients

from benchmarks.pairs.cases import places, quaternions
from benchmarks.pairs.oracle import Body, rotation

Array = NDArray[np.float64]
CAPSULE = Body("capsule", np.array([0.07, 0.3]))
COUNT = 2000


def tilted(seed: int, tilt: float) -> tuple[Array, Array]:
    """Draw poses of two capsules, one turned against the other by an angle of about so much [rad]."""
    random = np.random.default_rng(seed)
    q = quaternions(random, COUNT)
    turn = np.concatenate([np.ones((COUNT, 1)), tilt / 2 * random.normal(size=(COUNT, 3))], 1)
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    w = q[:, :1] * turn[:, :1] - (q[:, 1:] * turn[:, 1:]).sum(1, keepdims=True)
    v = q[:, :1] * turn[:, 1:] + turn[:, :1] * q[:, 1:] + np.cross(q[:, 1:], turn[:, 1:])
    x = np.concatenate([random.uniform(-0.25, 0.25, (COUNT, 3)), w, v], 1)
    return x, np.concatenate([np.zeros((COUNT, 3)), q], 1)


def derivatives(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return gap, point and normal (..., 7), and their gradients (..., 7, 14)."""
    x, y = (p.clone().requires_grad_() for p in (x, y))
    found = places(CAPSULE, CAPSULE, x, y)[..., 0, :]
    rows = [torch.cat(torch.autograd.grad(found[:, k].sum(), (x, y), retain_graph=True), -1) for k in range(7)]
    return found.detach(), torch.stack(rows, -2)


@pytest.mark.parametrize("tilt", [1e-4, 1e-3, 1e-2, 0.1, 1.0])
def test_float32(tilt: float) -> None:
    """Gradients in float32 are those in float64 to 1e-4, but for one pose of a hundred in which the nearest point runs from one end
    of the capsules to the other within a few roundings of the angle. Distances are right in all."""
    x, y = (torch.tensor(p, dtype=torch.float32) for p in tilted(0, tilt))
    (rough, rough_slopes), (fine, slopes) = derivatives(x, y), derivatives(x.double(), y.double())
    assert (rough[:, 0] - fine[:, 0]).abs().max() < 2e-7
    errors = (rough_slopes - slopes).abs().amax((1, 2)) / slopes.abs().amax((1, 2))
    assert errors.quantile(0.99) < 1e-4


@pytest.mark.parametrize("tilt", [0.0, 1e-4, 1e-3, 1e-2, 1.0])
def test_distance(tilt: float) -> None:
    """The distance of the axes, by trying points of the one against the other, whose nearest point is known."""
    x, y = tilted(1, tilt)
    found = places(CAPSULE, CAPSULE, torch.tensor(x), torch.tensor(y))[:, 0, 0].numpy()
    ends = [rotation(p[:, 3:])[:, :, 2] * CAPSULE.sizes[1] / 2 for p in (x, y)]
    low, high = np.full(COUNT, -1.0), np.full(COUNT, 1.0)

    def distance(share: Array) -> Array:
        at = x[:, :3] + share[:, None] * ends[0] - y[:, :3]
        along = np.clip((at * ends[1]).sum(1) / (ends[1] ** 2).sum(1), -1, 1)
        return np.linalg.norm(at - along[:, None] * ends[1], axis=1)

    for _ in range(80):  # the distance is convex along the axis
        third = (high - low) / 3
        left = distance(low + third) < distance(high - third)
        low, high = np.where(left, low, low + third), np.where(left, high - third, high)
    np.testing.assert_allclose(found, distance((low + high) / 2) - 2 * CAPSULE.sizes[0], atol=2e-7)


@pytest.mark.parametrize("tilt", [1e-2, 1.0])
def test_gradients(tilt: float) -> None:
    x, y = (torch.tensor(p[:3]) for p in tilted(4, tilt))
    tolerances = Tolerances(finite_difference=1e-5, second_order=1e-4)

    def found(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return places(CAPSULE, CAPSULE, x, y)

    check_gradients(found, (x, y), step=1e-5, directions=1, second_order=True, float32=False, tolerances=tolerances)


def test_axes_that_nearly_meet() -> None:
    """Capsules that cross 1e-6 m apart push along their common normal, whose derivative is bounded."""
    y = torch.tensor([0.0, 0, 0, 1, 0, 0, 0], dtype=torch.float64)
    x = torch.tensor([0.02, 1e-6, 0.03, np.cos(0.4), 0, np.sin(0.4), 0], dtype=torch.float64)
    for dtype in (torch.float64, torch.float32):
        found, slopes = derivatives(x[None].to(dtype), y[None].to(dtype))
        assert torch.allclose(found[0, 4:].double(), torch.tensor([0.0, 1, 0], dtype=torch.float64), atol=1e-5)
        assert found[0, 0] == pytest.approx(1e-6 - 0.14, abs=1e-7)
        assert slopes.abs().max() < 10
