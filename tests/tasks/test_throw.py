"""Throwing: the flight is a parabola, and the thrower found hits by Newton's law alone."""

from __future__ import annotations

import pytest
import torch
from tests.gradients import Tolerances, check_gradients

from costate.tasks.throw import HELD, Throw
from costate.train.solve import Outcome, solve

# Semi-implicit Euler with 2.5 ms falls 9.81 * t * 2.5 ms / 2 = 2.5 mm lower in 0.2 s than the parabola.
EULER = 3e-3
# A thousand substeps with 30 sweeps each, in and out of slip: finite differences agree to four digits.
ROUGH = Tolerances(finite_difference=1e-4, duality=1e-9, value=1e-10)


@pytest.fixture(scope="module")
def task() -> Throw:
    return Throw()


@pytest.fixture(scope="module")
def thrown(task: Throw) -> Outcome:
    return solve("throw", range(4), task=task)


def test_the_fingers_hold_the_ball_until_they_open(task: Throw) -> None:
    x = torch.zeros(1, 9 * task.swing, dtype=torch.float64)
    states = task.states(x)[:, 0]
    ball = states[:, 9:12]
    fingers = states[: task.swing, 7:9].sum(-1)
    # Held in a still hand: it sags by what the servos of the arm do, below 2 cm, and the fingers stay on it.
    assert (ball[: task.swing] - ball[0]).norm(dim=-1).max() < 0.02
    assert (fingers - 2 * HELD).abs().max() < 1e-4
    assert float(ball[-1, 2]) < float(ball[0, 2]) - 0.5


def test_thrown_balls_hit_within_twenty_iterations(task: Throw, thrown: Outcome) -> None:
    assert thrown.solved.all()
    assert thrown.iterations.max() <= 20


def test_the_hit_follows_from_the_release_alone(task: Throw, thrown: Outcome) -> None:
    v = task.world.coordinates("ball")[1].start
    free = task.swing + 20  # the ball may brush an open finger on its way out
    assert (task.world.gaps(thrown.states[free:]) > 0).all()
    p, speed = thrown.states[free, :, 9:12], _world_velocity(thrown.states[free], v)
    t = (task.flight - 20) * task.world.dt
    landed = p + speed * t + torch.tensor([0, 0, -9.81 / 2], dtype=p.dtype) * t**2
    assert (landed - torch.tensor(task.goal, dtype=p.dtype)).norm(dim=-1).max() < task.tolerance + EULER


def _world_velocity(state: torch.Tensor, v: int) -> torch.Tensor:
    """Velocities of floating bodies are in their own axes."""
    x, y, z, w = state[:, 12:16].unbind(-1)
    R = torch.stack(
        [
            torch.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
            torch.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
            torch.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )
    return (R @ state[:, v : v + 3, None])[..., 0]


def test_gradient_through_grip_release_and_flight(task: Throw) -> None:
    random = torch.Generator().manual_seed(0)
    x0 = task.problems([0]).x0
    ways = torch.randn(3, x0.shape[1], dtype=torch.float64, generator=random)
    # Smooth within a small step only: contacts of the fingers slip and stick.
    along = torch.zeros(1, 3, dtype=torch.float64)
    check_gradients(lambda a: task.residuals(x0 + 1e-3 * a @ ways), (along,), float32=False, tolerances=ROUGH)
