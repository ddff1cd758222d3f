"""Vector environments: the same numbers as gymnasium's own wrapper around single environments, in every autoreset mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.envs.balance import Balance

from costate.tasks.reach_position import ReachOptions, ReachPosition
from costate.train import Episodes

pytest.importorskip("gymnasium")
import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import costate.envs
from costate.envs import Environment, VectorEnvironment

NUM = 4


class Known(Balance):
    """Starts that follow from a counter, so that single environments and a batch can have the same ones."""

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        seeds = torch.randint(0, 5, (batch,), generator=generator)
        return Episodes((0.1 * seeds[:, None] * torch.tensor([1.0, -0.5, 2.0, 0.3])).to(dtype))


class Fixed(Balance):
    """One start for all."""

    def draw(self, batch: int, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Episodes:
        return Episodes(torch.tensor([0.3, -0.2, 0.5, 0.0], dtype=dtype).expand(batch, 4).clone())


class Timed(Balance):
    """A task that knows the time and is judged as a whole, but may end early."""

    stationary = False

    def observe(self, state: Any, step: int, episodes: Any) -> Any:
        return torch.cat([state, torch.full_like(state[:, :1], float(step))], -1)

    def reward(self, trajectory: Any) -> Any:
        return trajectory.states[..., 0].sum(0) + len(trajectory.actions)


@pytest.mark.parametrize("task", [Balance(), Timed()], ids=["stationary", "timed"])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=["next", "same"])
def test_steps_are_those_of_single_environments(task: Balance, mode: AutoresetMode) -> None:
    """Starts are random, from the seed of each environment, also when it begins anew; episodes end early, and by the clock."""
    ours = VectorEnvironment(task, NUM, autoreset_mode=mode)
    theirs = SyncVectorEnv([lambda: Environment(task)] * NUM, autoreset_mode=mode)
    starts = ours.reset(seed=7)[0]
    np.testing.assert_array_equal(starts, theirs.reset(seed=7)[0])
    assert len(np.unique(starts[:, 0])) == NUM
    rng, ends = np.random.default_rng(0), np.zeros((2, NUM))
    push = np.array([[0.0, 0.0], [0.4, 0.1], [-0.9, 0.3], [0.05, 0.0]], np.float32)
    for _ in range(60):
        actions = push + 0.1 * rng.uniform(-1, 1, push.shape).astype(np.float32)
        found, wanted = ours.step(actions), theirs.step(actions)
        for one, other in zip(found[:4], wanted[:4], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)  # of float32
            assert one.dtype == other.dtype
        _same(found[4], wanted[4])
        ends += np.array(found[2:4])
    assert (ends[0] > 0).any() and ends.sum() > 6, "episodes end early, and some several times"


def _same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        if isinstance(value, dict):
            _same(found[key], value)
            continue
        assert found[key].dtype == value.dtype, key
        for one, other in zip(found[key], value, strict=True):
            if other is None:
                assert one is None
            else:
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-6, err_msg=key)


def test_without_autoreset_the_user_says_when() -> None:
    envs = VectorEnvironment(Fixed(), NUM, autoreset_mode=AutoresetMode.DISABLED)
    start, _ = envs.reset(seed=0)
    over = np.zeros(NUM, bool)
    while not over.any():
        observation, _, ended, cut, _ = envs.step(np.tile(np.array([[-0.9, 0.0], [0.0, 0.0]], np.float32), (2, 1)))
        over = ended | cut
    assert over.tolist() == [True, False, True, False]
    with pytest.raises(gymnasium.error.ResetNeeded, match="2 episodes are over"):
        envs.step(np.zeros((NUM, 2), np.float32))
    after, _ = envs.reset(options={"reset_mask": over})
    np.testing.assert_array_equal(after[over], start[over])
    np.testing.assert_array_equal(after[~over], observation[~over])
    envs.step(np.zeros((NUM, 2), np.float32))
    with pytest.raises(ValueError, match="expected a bool array"):
        envs.reset(options={"reset_mask": np.zeros(NUM)})


def test_results_of_whole_episodes_are_told() -> None:
    task = ReachPosition(ReachOptions(steps=5, hold=2))
    envs = VectorEnvironment(task, 3, autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        observation, _, ended, cut, infos = envs.step(rng.uniform(-1, 1, (3, 6)).astype(np.float32))
    assert ended.all() and not cut.any() and infos["_final_info"].all()
    assert (infos["final_info"]["error"] > 1).all() and not infos["final_info"]["is_success"].any()
    assert np.abs(np.stack(infos["final_obs"]) - observation).max() > 0.01


def test_each_environment_has_a_seed_of_its_own() -> None:
    """Seed + k, or the k-th of a list; None leaves one as it is, and so does a mask."""
    single = Environment(Balance())
    wanted = {seed: single.reset(seed=seed)[0] for seed in (7, 8, 9, 10, 3)}
    envs = VectorEnvironment(Balance(), NUM)
    np.testing.assert_array_equal(envs.reset(seed=7)[0], [wanted[7 + k] for k in range(NUM)])
    np.testing.assert_array_equal(envs.reset(seed=[9, 3, 3, 7])[0], [wanted[k] for k in (9, 3, 3, 7)])
    mask = np.array([False, True, False, True])
    single.reset(seed=7)
    after = envs.reset(seed=[8, 8, 8, None], options={"reset_mask": mask})[0]
    np.testing.assert_array_equal(after, [wanted[9], wanted[8], wanted[3], single.reset()[0]])
    with pytest.raises(ValueError, match="3 seeds for 4 episodes"):
        envs.reset(seed=[1, 2, 3])


@pytest.mark.parametrize("name", ["Reach", "Cartpole", "LinkPendulum1"])
def test_an_action_that_is_no_number_ends_its_episode(name: str) -> None:
    """Of one environment, and not of those beside it; nothing that is not finite comes back."""
    envs = gymnasium.make_vec(f"costate/{name}-v0", num_envs=3)
    envs.reset(seed=0)
    actions = np.zeros(envs.action_space.shape or (), np.float32)
    actions[1, 0] = np.nan
    observation, reward, ended, cut, _ = envs.step(actions)
    assert ended.tolist() == [False, True, False] and not cut.any()
    assert np.isfinite(observation).all() and np.isfinite(reward).all() and not observation[1].any() and reward[1] == 0
    observation, reward, ended, _, _ = envs.step(np.zeros_like(actions))  # it has begun anew
    assert np.isfinite(observation).all() and observation[1].any() and not ended.any()


def test_seeds_repeat_everything() -> None:
    def run(seed: Any) -> np.ndarray:
        envs = VectorEnvironment(Known(), 8)
        seen = [envs.reset(seed=seed)[0]]
        return np.stack([*seen, *(envs.step(np.full((8, 2), 0.3, np.float32))[0] for _ in range(30))])

    np.testing.assert_array_equal(run(3), run(3))
    np.testing.assert_array_equal(run(list(range(8))), run(list(range(8))))
    assert np.abs(run(3) - run(4)).max() > 0.01


def test_make_vec_gives_many_behind_one_call() -> None:
    assert "costate/Reach-v0" in costate.envs.ENVIRONMENTS
    envs = gymnasium.make_vec("costate/Reach-v0", num_envs=64, steps=20, render_mode="rgb_array", size=(32, 24))
    assert isinstance(envs.unwrapped, VectorEnvironment) and envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observation, _ = envs.reset(seed=0)
    assert observation.shape == (64, 15) and envs.observation_space.contains(observation)
    envs.step(envs.action_space.sample())
    with pytest.raises(ValueError, match="have no page"):
        VectorEnvironment(Fixed(), 2, render_mode="human")
