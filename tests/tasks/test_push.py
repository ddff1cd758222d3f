"""Pushing: nothing happens without contact, and pushes found leave the box where it should be."""

from __future__ import annotations

import pytest
import torch

from costate.tasks.push import RADIUS, SIZE, Push
from costate.train.solve import solve


@pytest.fixture(scope="module")
def task() -> Push:
    return Push()


def test_a_box_stops_when_the_finger_does(task: Push) -> None:
    p = task.problems([0])
    x = p.x0.clone()
    x[:, task.knots :] = 0.0  # the second half of the time
    states = p.states(x)[:, 0]
    middle, end = states[task.steps // 2 + 10, 2:4], states[-1, 2:4]
    # The finger is at its side, and neither left it nor entered it. Statics leave open how much of the box's weight the finger's
    # friction carries or adds, and so how far they came.
    assert float((states[task.steps // 2 + 10, :2] - middle).norm()) == pytest.approx(SIZE / 2 + RADIUS, abs=1e-6)
    assert float(middle.norm()) > 0.04
    assert float((end - middle).norm()) < 2e-3


def test_the_finger_stays_outside_of_the_box(task: Push) -> None:
    p = task.problems(range(3))
    states = p.states(p.x0)
    apart = (states[..., :2] - states[..., 2:4]).norm(dim=-1)
    assert float(apart.min()) > SIZE / 2 + RADIUS - 1e-3


def test_without_contact_the_gradient_is_zero(task: Push) -> None:
    state = task.world.initial_state()
    state[:2] = torch.tensor([-1.0, 0.0])
    state[4] = SIZE / 2
    controls = torch.zeros(10, 2, dtype=torch.float64, requires_grad=True)
    end = task.world.rollout(state, controls)[-1]
    (g,) = torch.autograd.grad(end[2:5].sum(), controls)
    assert float(g.abs().max()) < 1e-12


def test_pushes_reach_the_pose(task: Push) -> None:
    found = solve("push", (0, 2, 4, 6), "gauss_newton", task=task)
    assert found.solved.all()
    goals = task._goals(found.numbers)
    assert (found.states[-1, :, 2:4] - goals[:, :2]).norm(dim=-1).max() < task.tolerance
    # Turned about z by the goal's angle: the box's x axis points along it.
    half = goals[:, 2] / 2
    assert torch.allclose(found.states[-1, :, 7], half.sin(), atol=0.03)
