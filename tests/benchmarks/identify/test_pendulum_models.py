"""Models of pendulums, and recordings, on motions whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.identify.pendulum_data import film, tracked
from benchmarks.identify.pendulum_models import Network, Physics, Scaled

DT = 1 / 400
LENGTHS = (1.0, 0.76)


@pytest.fixture(autouse=True)
def _numbers():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def swing():
    """Return a pendulum, and its motion: angles and rates (21, 3, 2)."""
    torch.set_default_dtype(torch.float64)
    true = Physics(2, DT, LENGTHS, 100.0)
    start = torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.5, 1.5]]), torch.tensor([[5.0, -9.0], [0.0, 12.0], [-6.0, 3.0]])
    with torch.no_grad():
        return true, true.roll(*start, 20)


def test_four_exact_frames_give_the_exact_start(swing) -> None:
    true, (angles, rates) = swing
    found = true.start(angles[:4])
    pixel = (
        1 / 600
    )  # noise of the films [rad]; four steps with the Jacobian of a free motion leave less than a thousandth of it
    torch.testing.assert_close(found[0], angles[3], atol=1e-3 * pixel, rtol=0)
    torch.testing.assert_close(found[1], rates[3], atol=1e-3 * pixel / DT, rtol=0)
    torch.testing.assert_close(true.predict(angles[:4], 17), angles[4:], atol=1e-2 * pixel, rtol=0)


def test_a_network_that_starts_at_zero_changes_nothing_and_learns_by_its_gradient(swing) -> None:
    true, (angles, _) = swing
    both = Physics(2, DT, LENGTHS, 100.0, Scaled(2, 10.0, 1.0, 4))
    torch.testing.assert_close(both.predict(angles[:4], 5), true.predict(angles[:4], 5))
    both.predict(angles[:4], 5).square().sum().backward()
    assert both.network is not None and both.raw.grad is not None
    weights = [p.grad for p in both.network.parameters()]
    assert weights[-2] is not None and float(weights[-2].abs().max()) > 0 and float(both.raw.grad.abs().max()) > 0


def test_a_network_of_known_accelerations_moves_as_it_says() -> None:
    class Falling(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return -2.0 * torch.ones_like(x[..., :1])

    model = Network(1, 0.01, Falling())
    angles, rates = model.roll(torch.zeros(1, 1), torch.ones(1, 1), 100)
    assert float(rates[-1]) == pytest.approx(-1.0)
    assert float(angles[-1]) == pytest.approx(0.0, abs=1e-9)  # t - t^2 at t = 1


def test_files_become_angles_from_gravity(tmp_path: Path) -> None:
    turn = 0.05 * np.arange(80)
    arms = [length * np.stack([np.cos(k * turn), np.sin(k * turn)], 1) for k, length in ((1, 600.0), (2, 450.0))]
    marks = np.hstack([np.full((80, 2), 1000.0), 1000 + arms[0], 1000 + arms[0] + arms[1]])
    np.savetxt(tmp_path / "film.csv", marks, delimiter=",")
    seen = film(tmp_path / "film.csv")
    np.testing.assert_allclose(seen.angles, np.stack([turn, 2 * turn], 1), atol=1e-9)  # more than a turn, unwrapped
    np.testing.assert_allclose(seen.tips(seen.angles) + 1000, marks[:, 4:], atol=1e-6)
    rows = np.array(
        [
            [0, 0.00, 1.0, 9],
            [0, 0.01, 1.1, 9],
            [0, 0.03, 1.3, 9],
            [0, 0.04, 1.4, 9],
            [1, 0.00, 2.0, 9],
            [1, 0.01, 2.1, 9],
        ]
    )
    np.savetxt(tmp_path / "tracked.txt", rows)
    first, second = tracked(tmp_path / "tracked.txt", 1)
    assert first.seen.tolist() == [True, True, False, True, True] and len(second.angles) == 2
