"""Flip and wheel: plans against kinematics, judges against closed forms, and a cube that is really turned over."""

from dataclasses import replace
from math import pi
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from costate.robot import Robot
from costate.tasks.manipulation.hand import hand_on_arm
from costate.tasks.manipulation.motions import search
from costate.tasks.manipulation.motions.flip import Flip
from costate.tasks.manipulation.motions.motion import along, smooth, steady
from costate.tasks.manipulation.motions.reach import Reach, about_z
from costate.tasks.manipulation.motions.search import SearchTrainer, SearchTraining
from costate.tasks.manipulation.motions.wheel import TURNS, Wheel
from costate.train.episode import Trajectory
from costate.train.evaluate import tried
from costate.train.plan import Iteration
from costate.train.run import Run

DOUBLE = torch.float64


def random(seed=0):
    return torch.Generator().manual_seed(seed)


# --- plans --------------------------------------------------------------------------------------------------------


def test_the_palm_is_where_it_was_asked_for():
    """The arm alone was solved for; the whole robot with the hand says where its palm is."""
    hand = hand_on_arm()
    place = torch.tensor([[0.0, 0.05, 0.03], [-0.1, -0.1, 0.1]], dtype=DOUBLE)
    yaw, tilt = torch.tensor([0.3, -0.4], dtype=DOUBLE), torch.tensor([0.4, 0.5], dtype=DOUBLE)
    offset = torch.tensor([[-0.09, 0.01, 0.12]] * 2, dtype=DOUBLE)
    home = torch.tensor(hand.home).expand(2, -1)
    arm = Reach(hand).arm(place, yaw, offset, tilt, home[:, :6])
    palm = Robot(hand.model).double().forward_kinematics(torch.cat([arm, home[:, 6:]], -1), "palm")
    turned = torch.stack([offset[:, 0] * yaw.cos() - offset[:, 1] * yaw.sin(),
                          offset[:, 0] * yaw.sin() + offset[:, 1] * yaw.cos(), offset[:, 2]], -1)  # fmt: skip
    there = palm.position + torch.tensor(hand.base.translation)
    assert torch.allclose(there, place + turned, atol=1e-6)
    fingers = palm.rotation[..., 2]  # along the fingers
    assert torch.allclose(fingers[:, 2], -tilt.sin(), atol=1e-6)
    assert torch.allclose(torch.atan2(fingers[:, 1], fingers[:, 0]), yaw, atol=1e-6)
    assert (palm.rotation[:, 2, 1] > 0.8).all()  # its back looks up


def test_ways_begin_and_end_at_rest():
    t = torch.linspace(0, 1, 10001, dtype=DOUBLE)
    for way, fastest in ((smooth, 1.5), (steady, 1 / 0.85)):
        speed = way(t).diff() / t.diff()
        assert abs(float(way(t)[0])) < 1e-12 and abs(float(way(t)[-1]) - 1) < 1e-12
        assert speed.min() > -1e-9 and abs(float(speed.max()) - fastest) < 1e-3
        assert max(speed[0], speed[-1]) < 1e-2
    knots = torch.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 3.0]], dtype=DOUBLE)
    values = torch.tensor([1.0, 3.0, 2.0], dtype=DOUBLE)[:, None, None].expand(3, 2, 1)
    found = along(torch.tensor([0.0, 1.0, 2.0, 3.0], dtype=DOUBLE), knots, values)[..., 0]
    assert torch.allclose(found, torch.tensor([[1.0, 1.0], [3.0, 2.0], [2.0, 3.0], [2.0, 2.0]], dtype=DOUBLE))


def test_fingers_bend_together_and_within_limits():
    hand = hand_on_arm()
    joints = Reach(hand).posture({"J2": torch.tensor([0.4, 9.0]), "THJ1": torch.tensor([-0.2, -0.2])})
    names = hand.joints[hand.arm :]
    assert all(abs(float(joints[0, names.index(f"{f}J2")]) - 0.4) < 1e-6 for f in ("FF", "MF", "RF", "LF"))
    assert abs(float(joints[0, names.index("THJ1")]) + 0.2) < 1e-6
    limit = hand.model.upper[hand.arm + names.index("FFJ2")]
    assert abs(float(joints[1, names.index("FFJ2")]) - limit) < 1e-6


def test_the_arm_of_the_wheel_keeps_to_the_speed_of_a_ur5():
    task = Wheel(replace(Wheel.options, steps=360))
    drawn = task.draw(16, random(), DOUBLE)
    start, _ = torch.tensor(list(task.numbers.values()), dtype=DOUBLE).T
    numbers = dict(zip(task.numbers, start.expand(16, -1).unbind(-1), strict=True))
    joints = task.motion(numbers, task.observe(drawn.state, 0, drawn))
    assert (joints.diff(dim=0)[..., :6].abs().amax() / task.options.dt) < pi
    home = torch.tensor(task.step.hand.home)
    assert (joints[0] - home).abs().max() < 0.35  # the hand starts near, wherever the valve is


# --- judges -------------------------------------------------------------------------------------------------------


def ended(task, drawn, pose, speed=0.0):
    """Return a trajectory that ends with a pose (B, 7) of the object and a speed."""
    after = drawn.state.clone()
    after[:, task.step.nq : task.step.nq + 7] = pose
    after[:, -6:] = 0.0
    after[:, -6] = speed
    return Trajectory(torch.stack([drawn.state, after]), torch.zeros(1), drawn)


def test_a_flip_is_a_quarter_turn_about_the_far_lower_edge():
    task = Flip()
    drawn = task.draw(5, random(), DOUBLE)
    before = task.pose(drawn.state)
    yaw, edge = 2 * torch.atan2(before[:, 5], before[:, 6]), 0.06 * drawn.thing[:, 0]
    ahead, left = about_z(yaw)[..., 0], about_z(yaw)[..., 1]
    pivot = before[:, :3] + edge[:, None] / 2 * (ahead - torch.tensor([0.0, 0.0, 1.0]))

    def rolled(angle):
        """Return the pose after a turn about the edge, by Rodrigues' formula."""
        arm, c, s = before[:, :3] - pivot, np.cos(angle), np.sin(angle)
        moved = c * arm + s * torch.linalg.cross(left, arm) + (1 - c) * (left * arm).sum(-1, keepdim=True) * left
        half = torch.cat([np.sin(angle / 2) * left, torch.full((5, 1), np.cos(angle / 2), dtype=DOUBLE)], -1)
        a, b = half, before[:, 3:]
        xyz = a[:, 3:] * b[:, :3] + b[:, 3:] * a[:, :3] + torch.linalg.cross(a[:, :3], b[:, :3])
        return torch.cat([pivot + moved, xyz, a[:, 3:] * b[:, 3:] - (a[:, :3] * b[:, :3]).sum(-1, keepdim=True)], -1)

    done = task.judge(ended(task, drawn, rolled(pi / 2)))
    assert done.success.all() and done.error.max() < 1e-4 and done.columns["place [mm]"].max() < 1e-6
    part = task.judge(ended(task, drawn, rolled(np.radians(75))))
    assert not part.success.any() and torch.allclose(part.error, torch.full((5,), 15.0, dtype=DOUBLE), atol=1e-4)
    assert not task.judge(ended(task, drawn, rolled(pi / 2), speed=0.1)).success.any()
    slid = before.clone()
    slid[:, :3] += edge[:, None] * ahead
    assert torch.allclose(task.judge(ended(task, drawn, slid)).error, torch.full((5,), 90.0, dtype=DOUBLE), atol=1e-4)


def test_a_wheel_has_to_turn_twice():
    task = Wheel()
    drawn = task.draw(3, random(), DOUBLE)
    after = drawn.state.clone()
    after[:, task.step.nq] += torch.deg2rad(torch.tensor([709.0, 711.0, -720.0], dtype=DOUBLE))
    verdict = task.judge(Trajectory(torch.stack([drawn.state, after]), torch.zeros(1), drawn))
    assert verdict.success.tolist() == [False, True, False] and abs(float(verdict.error[0]) - 11) < 1e-9
    assert TURNS == 2


def test_valves_differ_in_place_and_the_controller_sees_it():
    task = Wheel()
    drawn = task.draw(4, random(), DOUBLE)
    away = drawn.place - torch.tensor(task.middle)
    assert away.abs().max() <= task.options.place and away.std() > 0.005
    assert torch.allclose(task.observe(drawn.state, 0, drawn)[:, :3], drawn.place)
    assert torch.equal(drawn.repeated(2).params["translation:object/joint"][4:], drawn.place)
    assert torch.equal(drawn.only(2).place[0], drawn.place[2])


# --- search -------------------------------------------------------------------------------------------------------


def test_search_finds_the_minimum_of_a_bowl(monkeypatch):
    """Where the loss is a bowl, the mean of the best goes to its bottom."""
    bottom = torch.tensor([0.7, -0.4, 0.2], dtype=DOUBLE)

    class Bowl:
        steps, options = 1, None

        def policy(self, training):
            policy = SimpleNamespace(numbers=SimpleNamespace(data=torch.zeros(3, dtype=DOUBLE)))
            policy.begin = lambda: policy.numbers.data
            return policy

        def draw(self, batch, generator, dtype):
            return SimpleNamespace(repeated=lambda times: batch * times)

        def loss(self, trajectory, plan):
            return {"bowl": (trajectory.states[0] - bottom).square().sum(-1)}

    monkeypatch.setattr(search, "rollout", lambda task, numbers, drawn: SimpleNamespace(states=numbers[None]))
    trainer = object.__new__(SearchTrainer)
    trainer.options, trainer.task, trainer.control_steps = SearchTraining(candidates=30, kept=8), Bowl(), 0
    trainer.tried, trainer.policy = trainer.task, trainer.task.policy(None)
    trainer.spread = torch.ones(3, dtype=DOUBLE)
    losses = [trainer.iterate(Iteration(k, None, 0.0, 2)).terms["loss"] for k in range(15)]
    assert (trainer.policy.numbers.data - bottom).abs().max() < 0.02 and losses[-1] < 0.01 * losses[0]
    assert trainer.control_steps == 15 * 60


def test_search_refuses_to_keep_more_than_it_tries():
    with pytest.raises(ValueError, match="kept is 9 of 8"):
        SearchTraining(candidates=8, kept=9)


# --- the full world -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flip(tmp_path_factory):
    return Run.create(tmp_path_factory.mktemp("flip") / "run", Flip)


@pytest.mark.study
def test_a_cube_is_turned_over(flip):
    """The motion that search begins with turns cubes over; one without an arc does not, and nothing touches a cube by itself."""
    task, policy = flip.task, flip.policy
    drawn = task.draw(4, random(), DOUBLE)
    verdict = task.judge(tried(task, policy, drawn))
    assert verdict.success.sum() >= 3 and verdict.error[verdict.success].max() <= 10
    lazy = task.policy(task.training)
    lazy.numbers[list(task.numbers).index("angle")] = -8.5  # an arc of 0.1 rad
    assert not task.judge(tried(task, lazy, drawn)).success.any()
