"""The prediction of in-hand manipulation against closed forms, differences and MuJoCo."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

from costate.tasks.inhand.hand import allegro
from costate.tasks.inhand.mujoco import Judge
from costate.tasks.inhand.planner import Planner
from costate.tasks.inhand.predict import Physics, Prediction
from costate.tasks.inhand.trial import Protocol, about_z, start_and_goal

CUBE = Protocol().thing
EXACT = Physics(tolerance=1e-13, iterations=60)


@pytest.fixture(scope="module")
def planner() -> Planner:
    return Planner(Prediction(allegro(), EXACT))


def touching(planner: Planner) -> tuple[np.ndarray, np.ndarray]:
    """Return a state in which fingers push the cube, and a command."""
    start, _ = start_and_goal(planner, Protocol(), 3)
    out = start
    for k in range(3):
        command = np.array([0.0, 0.15, 0.1, 0.1] * 3 + [0.1, 0.0, 0.1, 0.05]) * (1 + 0.1 * k)
        out = planner.prediction.step.numpy(state=out, command=command, object=CUBE).after
    return out, np.linspace(-0.05, 0.1, planner.prediction.nu)


def test_free_motion_has_a_closed_form(planner):
    """Nothing touches: joints go a fixed part of their way, and the cube falls by g h^2."""
    p = planner.prediction
    high = np.concatenate([[0.0, 0.0, 0.5], about_z(0.4), p.hand.home])
    command = np.linspace(-0.1, 0.1, p.nu)
    moved = p.step.numpy(state=high, command=command, object=CUBE).motion
    reached = 1 - np.exp(-p.physics.dt * p.hand.stiffness / p.hand.damping)
    assert np.allclose(moved[6:], reached * command, atol=1e-12)
    assert np.allclose(moved[:6], [0, 0, -9.81 * p.physics.dt**2, 0, 0, 0], atol=1e-12)


def test_weight_on_a_sloping_palm():
    """The prediction's gravity points down the slope, towards the fingers."""
    p, u = Prediction(replace(allegro(), slope=30.0)), np.zeros(16)
    pull = np.array(ca.DM(p._smooth(ca.SX(u), ca.SX(CUBE))[1])).ravel()
    assert pull[:3] == pytest.approx(0.1 * 9.81 * np.array([0.5, 0.0, -np.sqrt(0.75)])) and not pull[3:].any()


def test_a_cube_rests_on_the_palm(planner):
    """A cube that nobody touches stays, a fraction of a millimetre above the palm: smoothing holds it there."""
    p = planner.prediction
    x = np.concatenate([[*p.hand.place, p.hand.top + 0.025 + 3e-4], about_z(0.0), p.hand.home])
    for _ in range(5):
        x = p.step.numpy(state=x, command=np.zeros(p.nu), object=CUBE).after
    assert abs(x[2] - p.hand.top - 0.025) < 1e-3
    assert np.abs(x[:2] - p.hand.place).max() < 1e-3 and abs(x[6]) > np.cos(0.01)


def test_friction_of_the_palm_holds_a_gentle_push(planner):
    """A finger's push of less than mu m g moves the cube less than the way over which friction builds up; a strong one moves it."""
    p = planner.prediction
    x = np.concatenate([[*p.hand.place, p.hand.top + 0.025], about_z(0.0), p.hand.home])
    heavy = np.array([0.05, 0.05, 0.05, 2.0, 0.5])
    command = np.zeros(p.nu)
    command[4:8] = [0.0, 0.15, 0.15, 0.15]  # the middle finger closes

    def pushed(thing):
        state = x
        for _ in range(4):
            state = p.step.numpy(state=state, command=command, object=thing).after
        return np.linalg.norm(state[:2] - x[:2])

    assert pushed(heavy) < 0.5 * pushed(CUBE) and pushed(CUBE) > 2e-3


def test_gradients_of_the_prediction(planner):
    state, command = (torch.tensor(a)[None] for a in touching(planner))

    def after(state, command, thing):
        return planner.prediction.step(state=state, command=command, object=thing).after

    check_gradients(after, (state, command, torch.tensor(CUBE)[None]), names=("state", "command", "object"))


def test_linearisation_of_a_plan_is_that_of_the_step(planner):
    p, (state, command), h = planner.prediction, touching(planner), 1e-6
    motion = p.step.numpy(state=state, command=command, object=CUBE).motion
    weights, goal = np.ones(6), np.concatenate([state[:3], about_z(1.0), p.hand.home])
    out = planner._expand.numpy(state=state, command=command, motion=motion, object=CUBE, goal=goal, weights=weights)

    def ahead(change: np.ndarray) -> np.ndarray:
        x = np.array(p.moved(state, change[: p.n])).ravel()
        return p.step.numpy(state=x, command=command + change[p.n :], object=CUBE).after

    middle, columns = ahead(np.zeros(p.n + p.nu)), []
    for unit in np.eye(p.n + p.nu):
        ends = [np.array(p.apart(middle, ahead(s * h * unit))).ravel() for s in (1, -1)]
        columns.append((ends[0] - ends[1]) / (2 * h))
    J = out.J.reshape(p.n, p.n + p.nu)
    assert np.abs(J - np.array(columns).T).max() < 1e-5 * np.abs(J).max()


def test_prediction_and_mujoco_agree_where_nothing_touches():
    hand = allegro()
    p = Prediction(hand)
    start = np.concatenate([[*hand.place, hand.top + 0.025], about_z(0.0), hand.home])
    command = np.tile([0.05, -0.1, -0.05, -0.05], 4)  # the fingers open
    expected = p.step.numpy(state=start, command=command, object=CUBE).after
    judge = Judge(hand, CUBE)
    judge.reset(start)
    judge.step(hand.home + command, p.physics.dt)
    assert np.abs(judge.state[7:] - expected[7:]).max() < 0.01  # a tenth of the largest command
    assert np.abs(judge.state[:3] - expected[:3]).max() < 1e-3
