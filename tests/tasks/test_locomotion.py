"""Tasks with rewards: their definitions, written once more in NumPy, and as environments of gymnasium."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import costate.envs
from costate.tasks.cartpole import Cartpole
from costate.tasks.locomotion.ant import Ant
from costate.tasks.locomotion.planar import HalfCheetah, Hopper

TASKS = {task.name: task for task in (Ant, Cartpole, HalfCheetah, Hopper)}
SIZES = {"ant": (37, 8), "cartpole": (5, 1), "half_cheetah": (17, 6), "hopper": (11, 3)}
"""Observations and actions, as published."""


@pytest.fixture(scope="module")
def tasks():
    return {name: task() for name, task in TASKS.items()}


def random_states(task, batch=20):
    g = torch.Generator().manual_seed(0)
    x = task.start(batch, g).double()
    x[:, task.world.nq :] += torch.randn(batch, task.world.nv, generator=g, dtype=torch.float64)
    return x, 2 * torch.rand(batch, task.size[1], generator=g, dtype=torch.float64) - 1


@pytest.mark.parametrize("name", TASKS)
def test_sizes_are_the_published_ones(tasks, name):
    assert tasks[name].size[:0:-1] == SIZES[name]


def test_ant_has_the_published_mass_and_its_reward_is_that_of_its_definition(tasks):
    """SHAC's ant has a density of 1,000 kg/m^3, which makes 182 kg."""
    ant = tasks["ant"]
    assert float(sum(link.inertia.mass for link in ant.world.setup.scene.model.links)) == pytest.approx(182, abs=1)
    x, action = random_states(ant)
    told = ant.telling(state=x, action=action, after=x, time=torch.tensor([0.5], dtype=torch.float64))
    for k, s in enumerate(x.numpy()):
        R = Rotation.from_quat(s[3:7]).as_matrix()
        v, w = R @ s[15:18], R @ s[18:21]
        seen = np.concatenate([s[2:7], v, w, s[7:15], 0.1 * s[21:29], [R[2, 2], R[0, 0]], action[k].numpy()])
        np.testing.assert_allclose(told.observation[k], seen, atol=1e-12)
        assert float(told.reward[k]) == pytest.approx(v[0] + 0.1 * R[2, 2] + R[0, 0] + s[2] - 0.27, abs=1e-12)
        assert float(told.margin[k]) == pytest.approx(s[2] - 0.27)


def test_hopper_is_rewarded_as_defined(tasks):
    hopper = tasks["hopper"]
    x, action = random_states(hopper)
    x[::2, 1] -= 0.5  # low ones, too
    told = hopper.telling(state=x, action=action, after=x, time=torch.zeros(1, dtype=torch.float64))
    for k, s in enumerate(x.numpy()):
        z = s[1] - 1.25
        d = np.clip(z + 0.30, -1, 0.3)
        height = d if d > 0 else -200 * d**2
        reward = s[6] + height + 1 - (s[2] / np.deg2rad(30)) ** 2 - 0.1 * float(action[k].square().sum())
        assert float(told.reward[k]) == pytest.approx(reward, abs=1e-9)
        assert (float(told.margin[k]) < 0) == (z < -0.45)


def test_cartpole_is_rewarded_as_defined(tasks):
    cartpole = tasks["cartpole"]
    x, action = random_states(cartpole)
    x[:, 1] += 2 * np.pi  # whole turns do not count
    told = cartpole.telling(state=x, action=action, after=x, time=torch.zeros(1, dtype=torch.float64))
    for k, s in enumerate(x.numpy()):
        angle = (s[1] + np.pi) % (2 * np.pi) - np.pi
        reward = -(angle**2) - 0.1 * s[3] ** 2 - 0.05 * s[0] ** 2 - 0.1 * s[2] ** 2
        assert float(told.reward[k]) == pytest.approx(reward, abs=1e-9)


def test_a_pole_falls_with_the_period_of_its_data(tasks):
    """About hanging, on a free cart: omega^2 = g m l / (I + m l^2 - (m l)^2 / (M + m)), with M = 1, m = 10, l = 0.5, I = 1."""
    world = tasks["cartpole"].world
    omega = (9.81 * 5 / (1 + 2.5 - 25 / 11)) ** 0.5
    start = torch.tensor([0.0, np.pi - 1e-4, 0, 0], dtype=torch.float64)
    angle = world.rollout(start, steps=60)[:, 1] - np.pi
    expected = -1e-4 * torch.cos(omega * torch.arange(61) / 60)
    assert float((angle - expected).abs().max()) < 0.05e-4


@pytest.mark.parametrize("name", ["Hopper", "Cartpole"])
def test_as_environments_of_gymnasium(name):
    envs = gymnasium.make_vec(f"costate/{name}-v0", num_envs=16)
    envs.reset(seed=0)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(60):
        seen, reward, terminated, truncated, _ = envs.step(
            rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32)
        )
        assert np.isfinite(seen).all() and np.isfinite(reward).all()
        ended += int((terminated | truncated).sum())
    assert (ended > 0) == (name == "Hopper")  # which falls when it moves at random


def test_the_last_action_is_seen_until_an_episode_begins_anew(tasks):
    batch = costate.envs.Batch(tasks["ant"], 3)
    assert not bool(batch.reset()[:, -8:].any())
    action = torch.full((3, 8), 0.5)
    assert torch.equal(batch.step(action).observation[:, -8:], action)
    assert not bool(batch.reset(torch.tensor([True, False, False]))[0, -8:].any())
