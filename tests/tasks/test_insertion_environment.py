"""The insertion task for reinforcement learning."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from costate.tasks.insertion import Insertion, InsertionOptions, Policy, Trajectory, draw, judge, loss, run
from costate.tasks.insertion.loss import outside
from costate.tasks.insertion.scene import ARM_Q

pytest.importorskip("gymnasium")
import gymnasium

from costate.tasks.insertion.environment import Batch
from costate.tasks.insertion.reward import RewardOptions, step_cost


@pytest.fixture(scope="module")
def task() -> Insertion:
    return Insertion(InsertionOptions(moving=True))


def episode(batch: Batch, policy: Policy) -> torch.Tensor:
    """Sum of rewards, (B,)."""
    observation, total = batch.reset(), torch.zeros(batch.batch, dtype=torch.float32)
    for _ in range(batch.length):
        with torch.no_grad():
            observation, reward, ended, cut = batch.step(policy(observation))
        total = total + reward
    assert bool(ended.all()) and not bool(cut.any())
    return total


@pytest.mark.parametrize("funnel", [1.0, 0.3])
def test_rewards_sum_to_minus_the_loss(task: Insertion, funnel: float) -> None:
    """But for what the start adds, which no action changes."""
    batch = Batch(task, 16, 1, RewardOptions(dense=False))
    batch.funnel = funnel
    total = episode(batch, Policy(generator=torch.Generator().manual_seed(0)))
    weights, trajectory = batch.weighed.weights, batch.trajectory()
    terms = loss(task, trajectory, weights, funnel)
    position, tilt, _ = task.errors(trajectory.states[0])
    start = (
        funnel
        * outside(position - position.new_tensor([0, 0, weights.aim]), tilt, weights)
        / (task.options.horizon + 1)
    )
    torch.testing.assert_close(-total, torch.stack(list(terms.values())).sum(0) - start, rtol=1e-5, atol=1e-5)


def test_dense_rewards_prefer_being_near(task: Insertion) -> None:
    """A bottle that stands in its seat all along is rewarded better in every step than one that hangs above it."""
    batch = Batch(task, 1, 1)
    batch.reset()
    state = batch.states[0].double()
    costs = []
    for height in (1e-4, 0.05):
        state[:, ARM_Q] = task.seats(state[:, 6:8], height)
        costs.append(torch.stack([step_cost(task, state, t, RewardOptions()) for t in range(1, batch.length + 1)]))
    assert bool((costs[0] < costs[1]).all())


def test_episodes_are_those_of_the_task(task: Insertion) -> None:
    """The same world, observations and verdict as training and evaluation have."""
    policy = Policy(generator=torch.Generator().manual_seed(0))
    batch = Batch(task, 8, 5)
    episode(batch, policy)
    with torch.no_grad():
        expected = run(task, task.world, policy, draw(task, 8, torch.Generator().manual_seed(5)))
    torch.testing.assert_close(batch.trajectory().states, expected.states, rtol=0, atol=1e-5)
    success, error = batch.results()
    verdict = judge(task, Trajectory(expected.states, expected.actions))
    assert torch.equal(success, verdict.success)
    torch.testing.assert_close(error, verdict.error, rtol=0, atol=1e-5)


def test_gymnasium_accepts_it() -> None:
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("costate.envs:costate/Insertion-v0").unwrapped
    check_env(env, skip_render_check=True)
    env.reset(seed=3)
    for _ in range(40):
        _, reward, over, cut, info = env.step(env.action_space.sample())
        assert float(reward) < 0 and not cut
    assert over and info["is_success"] is False and info["error"] > 0.01


def test_stable_baselines_gets_the_same_episodes(task: Insertion) -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import PPO

    from costate.tasks.insertion.vector_environment import InsertionVecEnv

    env, batch = InsertionVecEnv(task, 4, 2), Batch(task, 4, 2)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(env.reset(), batch.reset().numpy())
    infos, rewards, dones = [], np.zeros(4), np.zeros(4)
    for _ in range(batch.length):
        action = rng.uniform(-1, 1, (4, 6)).astype(np.float32)
        _, reward, dones, infos = env.step(action)
        np.testing.assert_array_equal(reward, batch.step(torch.from_numpy(action))[1].numpy())
        rewards += reward
    assert dones.all() and [i["episode"]["r"] for i in infos] == pytest.approx(list(rewards))
    assert [i["episode"]["error"] for i in infos] == pytest.approx(batch.results()[1].tolist())
    np.testing.assert_array_equal(
        infos[0]["terminal_observation"], task.observe(batch.states[-1], batch.length)[0].numpy()
    )
    torch.set_default_dtype(torch.float32)  # the networks of stable-baselines3 are of torch's default type
    PPO("MlpPolicy", env, n_steps=40, batch_size=80, n_epochs=1, device="cpu").learn(160)
