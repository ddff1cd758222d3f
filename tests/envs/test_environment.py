"""Any task is an environment: the same episodes as in training and evaluation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.envs.balance import Balance

from costate.tasks.reach_position import ReachOptions, ReachPosition
from costate.train.episode import rollout

pytest.importorskip("gymnasium")
import gymnasium
from gymnasium.utils.env_checker import check_env

from costate.envs import ENVIRONMENTS, Batch, Environment, register


@pytest.fixture(scope="module")
def task() -> ReachPosition:
    return ReachPosition(ReachOptions(steps=12, hold=3))


def test_steps_are_those_of_a_roll_out(task: ReachPosition) -> None:
    policy, batch = task.policy(task.training, torch.Generator().manual_seed(0)), Batch(task, 6, seed=1)
    observation, rewards = batch.reset(), []
    for _ in range(task.steps):
        with torch.no_grad():
            observation, reward, ended, cut = batch.step(policy(observation))
        rewards.append(reward)
    assert bool(ended.all()) and not bool(cut.any())
    with torch.no_grad():
        expected = rollout(task, policy, task.draw(6, torch.Generator().manual_seed(1)))
    torch.testing.assert_close(batch.trajectory().states, expected.states, rtol=0, atol=0)
    terms = task.loss(expected, task.plan(task.training, task.training.iterations))
    torch.testing.assert_close(-torch.stack(rewards).sum(0), torch.stack(list(terms.values())).sum(0))
    assert torch.equal(batch.results()[0], task.judge(expected).success)


@pytest.mark.parametrize("mode", [None, "rgb_array"])
def test_gymnasium_accepts_it(task: ReachPosition, mode: str | None) -> None:
    env = Environment(task, render_mode=mode, size=(64, 48))
    check_env(env, skip_render_check=True)
    env.reset(seed=3)
    for _ in range(task.steps):
        _, _, over, cut, info = env.step(env.action_space.sample())
        assert not cut
    assert over and info["is_success"] is False and info["error"] > 1
    picture = env.render()
    assert picture is None if mode is None else (picture.shape == (48, 64, 3) and picture.std() > 5)


@pytest.mark.parametrize("id", ENVIRONMENTS)
def test_all_are_registered_and_pass_both_checks(id: str) -> None:
    env = gymnasium.make(id)
    assert env.observation_space.shape == env.reset(seed=0)[0].shape and env.metadata["render_fps"] >= 10
    check_env(env.unwrapped, skip_render_check=True)
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(env.unwrapped, skip_render_check=True)


def test_a_page_follows_the_steps() -> None:
    """gymnasium's own check makes an environment of each mode, and asks it to render; a page answers while it is open."""
    pytest.importorskip("viser")
    from urllib.request import urlopen

    env = gymnasium.make("costate/Reach-v0", steps=3, hold=1, render_mode="human").unwrapped
    assert isinstance(env, Environment)
    env.reset(seed=0)
    env.step(env.action_space.sample())
    live = env._picture._live
    assert live.frames_sent >= 2 and torch.equal(live.state.float(), env._batch.states[-1][0])
    with urlopen(f"http://127.0.0.1:{live.server.get_port()}", timeout=20) as answer:
        assert answer.status == 200
    env.close()
    assert env._picture._live is None


def test_seeds_repeat_episodes_and_others_differ() -> None:
    env = Environment(Balance)
    first, again, other = (env.reset(seed=s)[0] for s in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    assert np.abs(Environment(Balance).reset()[0] - Environment(Balance).reset()[0]).max() > 1e-3


def test_a_users_task_is_registered_in_one_call() -> None:
    register("tests/Balance-v0", Balance, steps=7)
    env = gymnasium.make("tests/Balance-v0", limit=100.0)
    env.reset(seed=0)
    outcomes = [env.step(np.zeros(2, np.float32)) for _ in range(7)]
    assert [o[3] for o in outcomes] == [False] * 6 + [True] and not any(o[2] for o in outcomes)
    assert gymnasium.make_vec("tests/Balance-v0", num_envs=3).num_envs == 3
    with pytest.raises(TypeError, match=r"no option 'limits'; did you mean 'limit'"):
        gymnasium.make("tests/Balance-v0", limits=1.0)
    with pytest.raises(ValueError, match="render_mode is 'ansi'"):
        Environment(Balance, render_mode="ansi")
    with pytest.raises(TypeError, match="not of a int"):
        Environment(3)
