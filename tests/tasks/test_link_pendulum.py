"""The pendulum of n links: its step and its rewards written once more in NumPy, and a plan that earns all there is."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import costate as cs
import costate.envs
from costate.robot import Robot
from costate.tasks.link_pendulum import LinkPendulum, LinkPendulumOptions
from costate.train.episode import Trajectory

DT, G, L = 1 / 60, 9.8, 0.5


def task(n: int) -> LinkPendulum:
    return LinkPendulum(LinkPendulumOptions(n))


def stepped(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Step a chain of point masses with moments of inertia, by Lagrange's equations in the angles of the links against level."""
    n = len(q)
    mass = np.array([1.0] + [2.16] * (n - 1))
    moment = np.array([0.00494875] + [0.00539427] * (n - 1))
    mass[-1] += 0.01
    moment[-1] += 1e-4
    turn = np.tril(np.ones((n, n)))  # angles of links = turn @ angles of joints
    angle, rate = turn @ q, turn @ v
    carried = np.cumsum(mass[::-1])[::-1]
    shared = L**2 * carried[np.maximum.outer(np.arange(n), np.arange(n))]
    apart = angle[:, None] - angle
    M = turn.T @ (shared * np.cos(apart) + np.diag(moment)) @ turn
    h = turn.T @ ((shared * np.sin(apart)) @ rate**2 + G * L * carried * np.cos(angle))
    v = v + DT * np.linalg.solve(M, tau - h)
    return q + DT * v, v


def tip(q: np.ndarray) -> np.ndarray:
    angle = np.cumsum(q)
    return L * np.array([0, np.cos(angle).sum(), np.sin(angle).sum()])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_it_moves_sees_and_earns_what_the_definition_says(n):
    t, rng = task(n), np.random.default_rng(n)
    actions = rng.uniform(-1, 1, (100, n))
    target, states, rewards = np.array([0, 0, n / 2]), [np.zeros(2 * n)], []
    for k, action in enumerate(actions):
        q, v = states[-1][:n], states[-1][n:]
        before = np.sum((tip(q) - target) ** 2)
        q, v = stepped(q, v, 10 * action)
        d2 = np.sum((tip(q) - target) ** 2)
        rewards.append(before - d2 - (d2 if k == 99 else 0))
        states.append(np.concatenate([q, v]))
    start = t.start(1, torch.Generator()).double()
    found = t.world.rollout(start, t.control(torch.as_tensor(actions)[:, None]))
    few = 40  # after which long chains have forgotten the last bits
    np.testing.assert_allclose(found[: few + 1, 0], states[: few + 1], atol=1e-7)
    earned, steps = t.rewards(Trajectory(torch.as_tensor(np.array(states))[:, None], torch.as_tensor(actions)[:, None]))
    assert int(steps) == 100
    np.testing.assert_allclose(earned[:, 0], rewards, atol=1e-10)
    assert float(earned.sum()) == pytest.approx(n**2 / 2 - 2 * np.sum((tip(states[-1][:n]) - target) ** 2))
    x = torch.as_tensor(states[30])
    links = (*(f"link_{k}" for k in range(n)), "tip")
    places = [
        Robot(t.world.setup.scene.model).forward_kinematics(x[:n], f"link_pendulum/{name}").position for name in links
    ]
    seen = t.see(x[None], 30, None, [])[0]
    np.testing.assert_allclose(seen, torch.cat([x[n:], *places, torch.tensor([0.3])]), atol=1e-7)


def test_a_plan_whose_tip_arrives_earns_all_there_is():
    t = task(2)
    cost = cs.optimise.Cost(
        t.world, lambda s: 1e-3 * s.u, lambda s: 10 * (s.position("link_pendulum/tip") - np.array([0, 0, 1.0]))
    )
    g = torch.Generator().manual_seed(0)
    guess = torch.randn(100, 2, generator=g, dtype=torch.float64)
    plan = cs.optimise.ilqr(
        t.world, cost, torch.zeros(4, dtype=torch.float64), guess, cs.optimise.ILQROptions(bounds=(-10, 10))
    )
    verdict = t.judge(Trajectory(plan.extra["states"][:, None], plan.x[:, None] / 10))
    assert float(verdict.columns["return"]) == pytest.approx(t.best, abs=1e-3)
    assert float(verdict.error) < 0.02 and bool(verdict.success)


def test_a_chain_that_is_flung_ends_its_episode_and_pays_for_where_it_is():
    t = task(3)
    x = torch.zeros(1, 6, dtype=torch.float64)
    fast = x.clone()
    fast[0, 4] = -101.0
    told = t.telling(state=x, action=x[:, :3], after=fast, time=torch.tensor([0.5], dtype=torch.float64))
    assert float(told.margin) == pytest.approx(-1)
    assert float(told.reward) == pytest.approx(-4.5)  # it has not moved, and d^2 is 4.5 m^2


def test_the_last_step_is_the_end_for_gymnasium_as_well():
    envs = gymnasium.make_vec("costate/LinkPendulum3-v0", num_envs=2)
    envs.reset(seed=0)
    total = np.zeros(2)
    for _ in range(100):
        seen, reward, terminated, truncated, _ = envs.step(np.zeros((2, 3), np.float32))
        total += reward
    assert terminated.all() and not truncated.any() and seen.shape == (2, 16)
    np.testing.assert_allclose(seen[:, -1], 1)
    q, v = np.zeros(3), np.zeros(3)
    for _ in range(100):
        q, v = stepped(q, v, np.zeros(3))
    np.testing.assert_allclose(total, 4.5 - 2 * np.sum((tip(q) - [0, 0, 1.5]) ** 2), atol=1e-2)  # float32


def test_a_pendulum_without_links_is_refused():
    with pytest.raises(ValueError, match="links is 0"):
        LinkPendulumOptions(0)
