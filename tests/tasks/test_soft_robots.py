"""Robots among soft matter: gradients, and what should stay where it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from costate.tasks.soft.robots.knead import KneadTask
from costate.tasks.soft.robots.lift import LiftTask
from costate.tasks.soft.robots.pour import HANG, JUG_HEIGHT, JUG_RADIUS, PourTask


@pytest.mark.parametrize("task", [KneadTask(steps=40, spacing=0.015), LiftTask(steps=40, spacing=0.0075)])
def test_gradient_of_the_loss_by_the_knots(task) -> None:
    """Through arm, contact and matter, against differences; one knot presses harder than the first guess does."""
    setting = task.setting(0)
    g = torch.Generator().manual_seed(1)
    first = torch.zeros_like(setting.knots)
    first[2:, -1 if isinstance(task, LiftTask) else 1] = -0.3 if isinstance(task, LiftTask) else 0.05
    way = 0.1 * torch.randn(setting.knots.shape, generator=g).double()

    def loss(e: torch.Tensor) -> torch.Tensor:
        return task.loss(setting, task.play(setting, first + e * way))

    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(loss(e), e)
    eps = 1e-6
    with torch.no_grad():
        differences = (loss(torch.tensor(eps).double()) - loss(torch.tensor(-eps).double())) / (2 * eps)
    assert abs(exact) > 1e-6
    assert abs(exact - differences) < 1e-4 * abs(exact)


def test_an_upright_jug_keeps_what_is_in_it() -> None:
    task = PourTask(steps=40)
    setting = task.setting(0)
    held = replace(setting, knots=setting.knots[:1].expand_as(setting.knots))
    with torch.no_grad():
        motion = task.play(held, torch.zeros_like(setting.knots))
    place, R = setting.soft.world.link_pose(motion.robot[-1], "arm/tool")
    own = (motion.x[-1] - place) @ R
    assert own[:, :2].norm(dim=-1).max() < JUG_RADIUS + 1.2 * setting.soft.model.grid.dx
    assert own[:, 2].max() < HANG + 1.2 * setting.soft.model.grid.dx
    assert own[:, 2].min() > HANG - JUG_HEIGHT
