"""Arrows of proposed and of real contact forces, and the report that shows them."""

import numpy as np
import pytest
import torch

import costate as cs
from costate.report.run_report import run_report
from costate.tasks.manipulation.execute import OBJECT
from costate.tasks.manipulation.kinds import Grasp
from costate.tasks.manipulation.motions.flip import Flip
from costate.tasks.manipulation.options import ManipulationOptions
from costate.tasks.manipulation.show.arrows import BODY, Proposals, arrows, found, painted
from costate.train.run import Run

DOUBLE = torch.float64


@pytest.fixture(scope="module")
def flip(tmp_path_factory):
    return Run.create(tmp_path_factory.mktemp("flip") / "run", Flip)


def test_proposed_forces_are_those_that_move_the_object():
    """The model's step gives the object the momentum of the arrows, and of gravity."""
    task = Grasp(ManipulationOptions(steps=4))
    drawn = task.draw(3, torch.Generator().manual_seed(1), DOUBLE)
    action = 0.3 * torch.randn(3, task.step.na, generator=torch.Generator().manual_seed(2), dtype=DOUBLE)
    state, thing, n = task.start(drawn), task.believed(drawn), task.step.nq
    after = task.step.kernel(state=state, action=action, object=thing).after
    points, forces = Proposals(task.step)(action, thing[:, :1], task.pose(drawn.state))
    gained = thing[:, 1:2] * (after - state)[:, n + 7 : n + 10] / task.options.dt
    weight = np.array([0.0, 0.0, -9.81]) * thing[:, 1:2].numpy()
    assert np.allclose(forces.sum(1) + weight, gained.numpy(), atol=1e-9)
    arm = points - task.pose(drawn.state)[:, None, :3].numpy()
    spin = (np.cross(arm, forces).sum(1) / (thing[:, 1:2] * 0.06**2 / 6).numpy()) * task.options.dt
    assert np.allclose(spin, (after - state)[:, n + 10 : n + 13].numpy(), atol=1e-9)


def test_arrows_end_where_forces_act():
    points, forces = np.zeros((2, 1, 3)), np.array([[[0.0, 0.0, 2.0]], [[0.0, 0.0, 1.0]]])
    (first, second, last) = arrows({"contact forces": (points, forces)})["contact forces"]
    assert np.allclose(first[0, :6], [0, 0, -0.07, 0, 0, 0.07]) and np.allclose(second[0, 3:6], [0, 0, 0.035])
    assert np.array_equal(second, last)
    assert len(painted(points[0], 1e-3 * forces[0], 0.01, (0.0, 0.0, 1.0))) == 0  # too short to be seen


def test_forces_on_a_body_are_its_weight():
    """In a world of nothing but the object and a floor, whichever of the two comes first in a pair."""
    cube = cs.Body(OBJECT, [cs.shapes.box((0.06, 0.06, 0.06))], mass=0.1)
    world = cs.World(bodies=[cube], scenery=[cs.Static("floor", cs.shapes.plane())], dt=0.01)
    states = [world.initial_state().double()[None]]
    states[0][:, 2] = 0.03
    for _ in range(30):
        states.append(world.step(states[-1]))
    points, forces = found(world, torch.stack(states[-2:])[:, 0], torch.zeros(1, world.nu), {})
    assert np.allclose(forces[-1].sum(0), [0, 0, 9.81 * 0.1], atol=1e-3)
    assert np.allclose(points[-1][np.linalg.norm(forces[-1], axis=-1) > 0.01, 2], 0.0, atol=1e-3)
    assert BODY in world.link_names


@pytest.mark.study
def test_forces_of_a_resting_cube_are_its_weight(flip):
    """Nothing but the floor touches it, and each arrow ends where a force acts."""
    task = flip.task
    drawn = task.draw(1, torch.Generator().manual_seed(0), DOUBLE)
    home = torch.tensor(task.step.hand.home)[None]
    states = [drawn.state]
    for _ in range(5):
        states.append(task.world.step(states[-1], home, drawn.params))
    points, forces = found(task.world, torch.stack(states)[:, 0], home.expand(5, -1), drawn.params)
    assert np.allclose(forces[-1].sum(0), [0, 0, 9.81 * float(drawn.thing[0, 1])], atol=0.02 * 9.81 * 0.1)
    drawn_arrows = painted(points[-1], forces[-1], 1.0, (0.0, 0.0, 1.0))
    assert len(drawn_arrows) and np.allclose(drawn_arrows[:, 2] + drawn_arrows[:, 5], 0.0, atol=1e-3)
    assert BODY in task.world.link_names


def test_the_report_shows_failures_first(flip, tmp_path, monkeypatch):
    """With forces that stand for those of the full world, which are looked at above."""
    shown = []

    def stands_for_found(world, states, controls, params):
        shown.append(len(controls))
        return np.zeros((len(controls), 1, 3)), np.ones((len(controls), 1, 3))

    monkeypatch.setattr("costate.tasks.manipulation.show.report.found", stands_for_found)
    page = run_report(flip, 3).save(tmp_path / "report.html").read_text()
    assert "failures first" in page and "Red arrows are the contact forces" in page
    assert page.count('class="replay"') >= 3
    assert shown == [flip.task.options.steps] * 3
