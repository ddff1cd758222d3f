"""Environments for stable-baselines3."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.envs.balance import Balance

from costate.tasks.reach_position import ReachOptions, ReachPosition

pytest.importorskip("gymnasium")
pytest.importorskip("stable_baselines3")

from costate.envs import Batch
from costate.envs.stable_baselines import StableBaselinesEnvironment


def test_episodes_are_those_of_a_batch() -> None:
    task = ReachPosition(ReachOptions(steps=12, hold=3))
    envs, batch = StableBaselinesEnvironment(task, 3, seed=2), Batch(task, 3, seed=2)
    np.testing.assert_array_equal(envs.reset(), batch.reset().numpy())
    actions = np.random.default_rng(0).uniform(-1, 1, (task.steps, 3, 6)).astype(np.float32)
    for action in actions:
        _, reward, done, infos = envs.step(action)
        np.testing.assert_array_equal(reward, batch.step(torch.from_numpy(action)).reward.numpy())
    assert done.all() and [i["episode"]["l"] for i in infos] == [12] * 3


def test_episodes_of_different_lengths_begin_anew_by_themselves() -> None:
    envs = StableBaselinesEnvironment(Balance, 16, seed=0, limit=0.7)
    envs.reset()
    lengths, last = np.zeros(16, int), []
    for _ in range(50):
        _, _, done, infos = envs.step(np.zeros((16, 2), np.float32))
        lengths += 1
        for k in done.nonzero()[0]:
            assert infos[k]["episode"]["l"] == lengths[k]
            angle = np.arctan2(infos[k]["terminal_observation"][0], infos[k]["terminal_observation"][4])
            assert infos[k]["TimeLimit.truncated"] == (abs(angle) <= 0.7)
            last.append(lengths[k])
            lengths[k] = 0
    assert 1 <= min(last) < max(last) == 20
