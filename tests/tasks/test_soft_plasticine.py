"""Tasks of plasticine: the score, the hands, and short searches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from costate.continuum.mpm.grid import MpmGrid
from costate.tasks.soft.names import soft_task
from costate.tasks.soft.plasticine.hands import Chopsticks, Fingers, Form, RollingPin
from costate.tasks.soft.plasticine.scenes import SCENES, STEPS
from costate.tasks.soft.plasticine.score import Target, mass_at_nodes, pairs
from costate.tasks.soft.plasticine.task import PlasticineTask

QUIET = lambda text: None  # noqa: E731
GRID = MpmGrid((12, 10, 11), 0.1, (0.0, -0.2, 0.1))


@pytest.fixture(scope="module")
def small() -> PlasticineTask:
    task = soft_task("plasticine_move", iterations=6, cells=16)
    assert isinstance(task, PlasticineTask)
    return task


def test_mass_at_nodes_keeps_mass_and_its_middle() -> None:
    x = torch.rand(3, 50, 3, generator=torch.Generator().manual_seed(0)).double() * 0.5 + torch.tensor([0.2, 0, 0.3])
    mass = mass_at_nodes(GRID, x)
    assert torch.allclose(mass.sum(-1), torch.ones(3).double(), atol=1e-13)
    assert torch.allclose(mass @ torch.as_tensor(GRID.nodes()), x.mean(-2), atol=1e-13)


def test_score_goes_from_0_to_1_and_losses_vanish_at_the_target() -> None:
    g = torch.Generator().manual_seed(1)
    begin = 0.3 + 0.3 * torch.rand(400, 3, generator=g).double()
    target = Target(GRID, begin, begin + torch.tensor([0.2, 0.0, 0.1]))
    half = mass_at_nodes(GRID, begin + torch.tensor([0.1, 0.0, 0.05]))
    assert float(target.score(mass_at_nodes(GRID, begin))) == pytest.approx(0, abs=1e-12)
    assert 0.05 < float(target.score(half)) < 0.95
    assert float(target.score(target.mass)) == pytest.approx(1)
    at, near = ([float(t) for t in target.losses(m)] for m in (target.mass, half))
    assert at[0] == 0
    assert at[1] < 0.25 * near[1]  # nodes with less than half a particle are not part of the shape
    assert near[0] > 0.1


def test_pairs_of_least_work() -> None:
    """A cloud that is only moved: every particle goes to its own copy."""
    x = torch.rand(60, 3, generator=torch.Generator().manual_seed(2)).double()
    rows, goals = pairs(x, x + 0.01, 60, np.random.default_rng(0))
    assert torch.allclose(goals, x[rows] + 0.01)


def test_a_pin_rolls_without_slip() -> None:
    """Its lowest point rests while it rolls; and its axis is level, across its way."""
    pin = RollingPin(0.03, 0.3, (0.5, 0.5, 0.2), (0.6, 0.06, 0.0))
    actions = torch.tensor([[0.8, 0.5, 0.0], [-0.4, 0.2, 0.0]], dtype=torch.float64)
    rows, _ = pin.rows(actions, 4, 1e-3)
    R, v, w = rows[:, 0, 3:12].unflatten(-1, (3, 3)), rows[:, 0, 12:15], rows[:, 0, 15:18]
    down = torch.tensor([0.0, 0.0, -0.03], dtype=torch.float64).expand_as(v)
    assert torch.allclose(v + torch.linalg.cross(w, down), torch.zeros_like(v), atol=1e-12)
    assert torch.allclose(torch.linalg.det(R), torch.ones(8).double())
    assert torch.allclose((R[:, :, 2] * v).sum(-1), torch.zeros(8).double(), atol=1e-12)


@pytest.mark.parametrize(
    "hand",
    [
        Fingers([Form(0.03)] * 2, [(0.1, 0.2, 0.05), (0.3, 0.2, 0.1)], (0.01, 0.02, 0.03), low=0.04),
        RollingPin(0.03, 0.3, (0.5, 0.5, 0.2), (0.6, 0.06, 0.01), low=0.19),
        Chopsticks(0.02, 0.1, (0.5, 0.5, 0.2), 0.1, (0.01, 0.01, 0.01, 0.1, 0.02)),
    ],
)
def test_hands_go_on_from_where_they_are(hand) -> None:
    """Two steps at once are one after the other, and velocities are those of the positions."""
    g = torch.Generator().manual_seed(4)
    actions = 2 * torch.rand(2, hand.count, generator=g).double() - 1
    rows, end = hand.rows(actions, 3, 1e-3)
    first, state = hand.rows(actions[:1], 3, 1e-3)
    second, last = hand.rows(actions[1:], 3, 1e-3, state)
    assert torch.allclose(rows, torch.cat([first, second]), atol=1e-12)
    assert torch.allclose(end, last, atol=1e-12)
    assert torch.allclose(torch.diff(rows[..., :3], dim=0) / 1e-3, rows[:-1, :, 12:15], atol=1e-9)


def test_distances_of_forms_equal_those_of_their_tools() -> None:
    from costate.continuum.mpm.fill import distances

    x = np.random.default_rng(5).uniform(-0.2, 0.2, (200, 3))
    rows = torch.cat([torch.zeros(3), torch.eye(3).flatten(), torch.zeros(6)]).double()
    for form in (Form(0.05), Form(0.03, 0.1), Form(0.03, ring=0.1)):
        exact = np.maximum(distances(form.tool(0.5).shape, x)[0], 0)
        assert np.allclose(form.gap(rows, torch.as_tensor(x)).numpy(), exact, atol=1e-5)


@pytest.mark.parametrize("name", sorted(SCENES))
def test_scenes_differ_from_number_to_number(name: str) -> None:
    scenes = [SCENES[name](np.random.default_rng(k), 1 / 32) for k in (0, 1)]
    assert scenes[0].points.shape[1] == 3
    assert not np.allclose(scenes[0].target, scenes[1].target)
    for scene in scenes:
        assert scene.points[:, 2].min() > 0  # above the floor
        assert not scene.is_demonstrated or np.abs(scene.target).max() <= 1


def test_gradient_of_the_loss_by_the_actions(small: PlasticineTask) -> None:
    episode = small.episode(0)
    g = torch.Generator().manual_seed(6)
    a, da = (torch.rand(STEPS, 6, generator=g).double() - 0.5 for _ in range(2))
    a[:, 0] += 0.3
    a[:, 3] -= 0.3

    def loss(e: torch.Tensor) -> torch.Tensor:
        return episode.judge(*episode.play(a + e * da))[0]

    e = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(loss(e), e)
    eps = 1e-6
    with torch.no_grad():
        differences = (loss(torch.tensor(eps).double()) - loss(torch.tensor(-eps).double())) / (2 * eps)
    assert abs(exact - differences) < 1e-4 * abs(exact)


def test_a_few_episodes_move_the_ball(small: PlasticineTask) -> None:
    found = small.solve(0, QUIET)
    assert len(found.losses) == 6
    assert found.losses[-1] < found.losses[0]
    assert found.facts["score"] > 0.1
    assert found.tools is not None
    assert len(found.tools) == len(found.x) == len(found.times)


def test_a_policy_learns_from_the_same_gradients(small: PlasticineTask) -> None:
    found = replace(small, policy=True, iterations=4).solve(0, QUIET)
    assert found.losses[-1] < found.losses[0]
    assert found.facts["least score"] <= found.facts["score"]
