"""The racecar: stopping distances and the friction found against v^2 / (2 mu g)."""

from __future__ import annotations

import pytest
import torch
from tests.gradients import Tolerances, check_gradients

from costate.tasks.racecar import Racecar
from costate.train.solve import solve

# Brakes are servos: wheels turn a little before they lock, and steps of 5 ms count the last one whole.
STOPPING = 0.015


@pytest.fixture(scope="module")
def task() -> Racecar:
    return Racecar()


def test_it_stops_after_v_squared_over_two_mu_g(task: Racecar) -> None:
    mu = torch.tensor([[0.15], [0.25], [0.5], [0.8]], dtype=torch.float64)
    stopped = task.states(mu.log())[-1, :, 0]
    expected = task.speed**2 / (2 * 9.81 * mu[:, 0])
    assert torch.allclose(stopped, expected, rtol=STOPPING)


def test_friction_is_found_within_ten_iterations(task: Racecar) -> None:
    found = solve("racecar", range(20), task=task)
    assert int(found.solved.sum()) >= 18
    assert found.iterations.max() <= 10
    expected = task.speed**2 / (2 * 9.81 * task.goal)
    assert torch.allclose(found.x.exp()[found.solved], torch.tensor(expected, dtype=torch.float64), rtol=STOPPING)


def test_gradient_through_the_stop(task: Racecar) -> None:
    guess = torch.tensor([[0.2], [0.4]], dtype=torch.float64).log()
    check_gradients(
        task.residuals, (guess,), step=1e-3, float32=False, tolerances=Tolerances(finite_difference=1e-4, value=1e-10)
    )


def test_the_landscape_falls_to_the_answer(task: Racecar) -> None:
    mu = torch.linspace(0.1, 0.6, 21, dtype=torch.float64)
    loss, slope = task.landscape(mu)
    expected = task.speed**2 / (2 * 9.81 * task.goal)
    assert (slope[mu < expected - 0.01] < 0).all()
    assert (slope[mu > expected + 0.01] > 0).all()
    assert float(mu[loss.argmin()]) == pytest.approx(expected, abs=0.025)
