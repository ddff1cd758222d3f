"""The race of training methods: the reward as a formula is that of the environments, and progress is read as it should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tests.tasks.insertion_motions import held

from benchmarks.race.coordinates import FASTEST, SEEN, UNITS, Coordinates
from benchmarks.race.curve import Curve
from benchmarks.race.rewarded import RewardedInsertion
from benchmarks.race.scaled import ScaledEnvironment
from costate.tasks.insertion import Insertion, InsertionOptions, judge
from costate.tasks.insertion.loss import InsertionWeights
from costate.tasks.insertion.reward import RewardOptions, step_cost
from costate.tasks.insertion.scene import ARM_Q, ARM_V, DEPTH
from costate.train.episode import Trajectory

D = torch.float64


def test_reward_and_observation_as_formulas() -> None:
    """In every step of random motions."""
    task = Insertion(replace(InsertionOptions().unlimited(), moving=True))
    rewards = RewardOptions(InsertionWeights(far=0.1, funnel=2.0))
    formulas, random = RewardedInsertion(task, rewards), torch.Generator().manual_seed(0)
    state = task.sample(3, random, D)
    for t in range(1, task.steps + 1):
        action = 0.2 * torch.randn(3, 6, generator=random, dtype=D)
        after = task.smooth.step(state, task.control(action))
        told = formulas.telling(
            state=state, action=action, after=after, time=torch.full((3, 1), t / task.steps, dtype=D)
        )
        torch.testing.assert_close(-told.reward[:, 0], step_cost(task, after, t, rewards), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(told.observation, task.observe(after, t), rtol=0, atol=1e-12)
        state = after


def test_peers_move_the_bottle_as_their_actions_say_and_feel_no_contact() -> None:
    task = Insertion(replace(InsertionOptions().unlimited(), target_range=0.0))
    env = ScaledEnvironment(task, 6, 0, RewardOptions(), 0.5)
    assert env.reset().shape == (6, SEEN) == (6, *env.observation_space.shape)
    for k in range(task.steps - 1):
        before = env.batch.states[-1]
        env.step(np.eye(6, dtype=np.float32) / (2 if k < 5 else 5))
        action = env.batch.actions[-1]
        joints = action.double() * task.action_scale[1]
        moved = (task.arm.jacobian(before[:, ARM_Q].double(), "bottle") @ joints[..., None])[..., 0] / torch.tensor(
            FASTEST, dtype=D
        )
        torch.testing.assert_close(moved / moved.diagonal()[:, None], torch.eye(6, dtype=D), rtol=0, atol=1e-4)
        after = task.smooth.step(before, task.control(action))
        torch.testing.assert_close(env.batch.states[-1], after, rtol=0, atol=1e-6)
    last = env.step(np.zeros((6, 6), np.float32))
    assert last[2].all() and all(each["terminal_observation"].shape == (SEEN,) for each in last[3])


def test_peers_see_the_errors_of_the_bottle() -> None:
    task = Insertion(replace(InsertionOptions().unlimited(), moving=True))
    coordinates, state = Coordinates(task), task.sample(4, torch.Generator().manual_seed(0), D)
    state[:, ARM_V] = 0.1
    seen = coordinates.seen(task.observe(state, 3))
    position, tilt, velocity = task.errors(state)
    errors = (3 * seen[:, 19:]).sinh() * torch.tensor([UNITS[0]] * 3 + [UNITS[1]] * 2 + [UNITS[2]] * 3, dtype=D)
    torch.testing.assert_close(errors[:, :3], position, rtol=0, atol=1e-9)
    torch.testing.assert_close(errors[:, 3:5].norm(dim=-1).asin(), tilt, rtol=0, atol=1e-6)
    torch.testing.assert_close(errors[:, 5:], velocity, rtol=0, atol=1e-9)


def test_a_level_is_reached_once_no_look_is_below(tmp_path: Path) -> None:
    points = [{"steps": float(k), "success": s} for k, s in enumerate((0.2, 0.95, 0.4, 0.92, 0.97))]
    curve = Curve(tmp_path / "x.json", points)
    assert curve.reached(0.9) == points[3] and curve.reached(0.99) is None


def test_a_training_ends_after_ten_looks_in_a_row_at_the_highest_level(tmp_path: Path) -> None:
    curve = Curve(tmp_path / "x.json", [{"success": 0.9}] + [{"success": 1.0}] * 9)
    assert not curve.settled(0.99)
    curve.points.append({"success": 0.99})
    assert curve.settled(0.99)


def test_a_looser_judgement_allows_more() -> None:
    """A bottle that rests 1 mm above its seat fails by its place alone, and succeeds with twice the tolerance."""
    task = Insertion(InsertionOptions().unlimited())
    state = held(task, height=1e-3 - DEPTH)
    still = Trajectory(state.expand(task.steps + 1, 1, 18), torch.zeros(task.steps, 1, 6, dtype=D))
    strict, loose = judge(task, still), judge(task, still, 2.01)
    assert not strict.success and not strict.kept_place and strict.kept_still and strict.within_limits
    assert loose.success and loose.kept_place
