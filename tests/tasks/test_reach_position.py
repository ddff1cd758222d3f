"""Reach, learnt: the task says what it promises, and a short training brings the tool nearer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients

from costate.cli.main import main
from costate.tasks.reach_position import ReachOptions, ReachPosition
from costate.train.episode import Trajectory, rollout
from costate.train.evaluate import evaluate_policy
from costate.train.run import Run
from costate.train.trainer import train

D = torch.float64


@pytest.fixture(scope="module")
def task() -> ReachPosition:
    return ReachPosition(ReachOptions(steps=12, hold=3))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_goals_fill_their_box(task: ReachPosition) -> None:
    goal = task.draw(2000, seeded(0), D).goal
    low, high = (torch.tensor(c, dtype=D) for c in (task.options.low, task.options.high))
    assert bool((goal >= low).all()) and bool((goal <= high).all())
    assert bool((goal.amin(0) < low + 0.01).all()) and bool((goal.amax(0) > high - 0.01).all())


def test_an_arm_that_stands_at_its_goal_succeeds(task: ReachPosition) -> None:
    """And no longer when the goal is 5.1 mm away in the last step, or a joint was beyond its limit."""
    drawn = task.draw(4, seeded(1), D)
    drawn = replace(drawn, goal=task.arm.forward_kinematics(drawn.state[:, :6], "tool0").position)
    drawn.goal[1, 0] += 4.9e-3
    drawn.goal[2, 0] += 5.1e-3
    states = drawn.state.expand(13, 4, 12).clone()
    states[2, 3, 1] = float(task.arm.upper[1]) + 0.01
    verdict = task.judge(Trajectory(states, torch.zeros(12, 4, 6, dtype=D), drawn))
    assert verdict.success.tolist() == [True, True, False, False]
    assert verdict.error[:3].tolist() == pytest.approx([0.0, 4.9, 5.1], abs=1e-9)


def test_gradients_of_the_loss(task: ReachPosition) -> None:
    drawn = task.draw(2, seeded(2), D)
    policy = task.policy(replace(task.training, hidden=8), seeded(3)).double()

    def terms(state: torch.Tensor) -> torch.Tensor:
        trajectory = rollout(task, policy, replace(drawn, state=state))
        return torch.stack(list(task.loss(trajectory, task.plan(task.training, 0)).values()))

    check_gradients(terms, (drawn.state,), names=("start",), step=1e-4, directions=1, float32=False)


def test_a_short_training_brings_the_tool_nearer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From 280 mm to a few on episodes it has not seen; `costate train reach` takes ten times as long."""
    options = replace(
        ReachPosition.training, iterations=30, batch=32, hidden=32, warm_up=5, learning_rate=1e-2, watch_interval=0
    )
    folder = Run.create(tmp_path / "run", ReachPosition, options)
    before = evaluate_policy(folder.task, folder.policy, 50).metrics
    train(folder)
    after = evaluate_policy(folder.task, folder.policy, 50).metrics
    assert before.success == 0 and before.error_mean > 200
    assert after.error_mean < 25
    assert main(["evaluate", str(folder.path), "--episodes", "2", "--threads", "1"]) == 0
    assert "fastest joint in the end [rad/s]" in capsys.readouterr().out


def test_the_exported_network_takes_measurements(task: ReachPosition) -> None:
    policy = task.policy(task.training, seeded(4))
    drawn = task.draw(5, seeded(5), D)
    measured = torch.cat([drawn.state, task.away(drawn.state, drawn.goal)], -1).numpy()
    with torch.no_grad():
        wanted = task.control(policy.double()(task.observe(drawn.state, 0, drawn))).numpy()
    np.testing.assert_allclose(task.exported(policy)(measured), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("wrong", [{"hold": 60}, {"low": (0.7, -0.3, 0.2)}])
def test_impossible_options_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"hold is|is empty"):
        ReachOptions(**wrong)
