"""Golf: friction stops the ball as the textbook says, and the strokes found put it at the target."""

from __future__ import annotations

import pytest
import torch

from costate.tasks.golf import GRASS, MASS, RADIUS, ROLLING, Golf
from costate.train.solve import solve


@pytest.fixture(scope="module")
def task() -> Golf:
    return Golf()


def test_a_ball_skids_to_rest_after_v_squared_over_two_mu_g(task: Golf) -> None:
    assert ROLLING > GRASS * MASS * 9.81 * RADIUS  # the grass holds its spin
    state = task.start.clone()
    v = task.world.coordinates("ball")[1].start
    state[v] = 2.0
    state[0] = torch.pi  # the linkage is turned away
    states = task.world.rollout(state, torch.zeros(60, 3, dtype=torch.float64))
    assert float(states[-1, 3]) == pytest.approx(2.0**2 / (2 * GRASS * 9.81), rel=0.01)
    assert float(states[-1, v : v + 6].abs().max()) < 1e-6


def test_strokes_put_the_ball_to_rest_at_the_target(task: Golf) -> None:
    found = solve("golf", (1, 2, 3, 5), task=task)
    assert found.solved.all()  # which asks for rest, too
    assert found.iterations.max() <= 50


def test_a_linkage_that_does_not_reach_the_ball_has_no_gradient() -> None:
    # Hanging still beside the ball, torques too weak to move it there: the ball does not know of them.
    task = Golf(home=(0.0, -0.3, 0.0), steps=40, swing=5)
    x = torch.zeros(1, 15, dtype=torch.float64, requires_grad=True)
    r = task.residuals(x)
    (g,) = torch.autograd.grad(r.sum(), x)
    assert float(g.abs().max()) == 0.0
    assert float(r.detach().norm()) > 1.0
