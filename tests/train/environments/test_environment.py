"""Any task is an environment: the same episodes as in training and evaluation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.tasks.reach_position import ReachOptions, ReachPosition
from costate.train.episode import rollout

pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env

from costate.train.environments.batch import Batch
from costate.train.environments.environment import Environment


@pytest.fixture(scope="module")
def task() -> ReachPosition:
    return ReachPosition(ReachOptions(steps=12, hold=3))


def test_steps_are_those_of_a_roll_out(task: ReachPosition) -> None:
    policy, batch = task.policy(task.training, torch.Generator().manual_seed(0)), Batch(task, 6, seed=1)
    observation, rewards, over = batch.reset(), [], False
    while not over:
        with torch.no_grad():
            observation, reward, over = batch.step(policy(observation))
        rewards.append(reward)
    with torch.no_grad():
        expected = rollout(task, policy, task.draw(6, torch.Generator().manual_seed(1)))
    torch.testing.assert_close(batch.trajectory().states, expected.states, rtol=0, atol=0)
    terms = task.loss(expected, task.plan(task.training, task.training.iterations))
    torch.testing.assert_close(-torch.stack(rewards).sum(0), torch.stack(list(terms.values())).sum(0))
    assert torch.equal(batch.results()[0], task.judge(expected).success)


def test_gymnasium_accepts_it(task: ReachPosition) -> None:
    env = Environment(task)
    check_env(env, skip_render_check=True)
    env.reset(seed=3)
    for _ in range(task.steps):
        _, _, over, cut, info = env.step(env.action_space.sample())
        assert not cut
    assert over and info["is_success"] is False and info["error"] > 1


def test_stable_baselines_takes_it(task: ReachPosition) -> None:
    pytest.importorskip("stable_baselines3")
    from costate.train.environments.vector import VectorEnvironment

    envs, batch = VectorEnvironment(task, 3, seed=2), Batch(task, 3, seed=2)
    np.testing.assert_array_equal(envs.reset(), batch.reset().numpy())
    actions = np.random.default_rng(0).uniform(-1, 1, (task.steps, 3, 6)).astype(np.float32)
    for action in actions:
        _, reward, done, infos = envs.step(action)
        np.testing.assert_array_equal(reward, batch.step(torch.from_numpy(action))[1].numpy())
    assert done.all() and [i["episode"]["l"] for i in infos] == [12] * 3
