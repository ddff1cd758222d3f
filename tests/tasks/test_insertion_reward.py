"""The race of training methods: the reward as a formula is that of the environments, and progress is read as it should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.race.curve import Curve
from benchmarks.race.rewarded import RewardedInsertion
from benchmarks.race.scaled import FASTEST, ScaledEnvironment, acted, by_tool
from costate.tasks.insertion import Insertion, InsertionOptions
from costate.tasks.insertion.loss import InsertionWeights
from costate.tasks.insertion.reward import RewardOptions, step_cost
from costate.tasks.insertion.scene import ARM_Q

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
    task = Insertion(replace(InsertionOptions().unlimited(), target_range=0.0, start_range=0.0))
    by = by_tool(task)
    env = ScaledEnvironment(task, 2, 0, RewardOptions(), 0.5, by)
    env.reset()
    start = env.batch.states[-1][:, ARM_Q].double()
    jacobian = task.arm.jacobian(start[0], "bottle").detach()
    for k in range(6):
        action = np.eye(6, dtype=np.float32)[[k, k]] / 5
        joints = acted(action, by)[0].double() * task.action_scale[1].double()
        wanted = torch.tensor(FASTEST, dtype=D) * torch.eye(6, dtype=D)[k] / 5
        torch.testing.assert_close(jacobian @ joints, wanted, rtol=0, atol=1e-5)
    down = np.tile(np.array([0, 0, -1, 0, 0, 0], np.float32), (2, 1))
    for _ in range(task.steps):
        before = env.batch.states[-1]
        env.step(down)
        if len(env.batch.actions):
            control = task.control(env.batch.actions[-1])
            torch.testing.assert_close(env.batch.states[-1], task.smooth.step(before, control), rtol=0, atol=1e-6)


def test_a_level_is_reached_once_no_look_is_below(tmp_path: Path) -> None:
    points = [{"steps": float(k), "success": s} for k, s in enumerate((0.2, 0.95, 0.4, 0.92, 0.97))]
    curve = Curve(tmp_path / "x.json", points)
    assert curve.reached(0.9) == points[3] and curve.reached(0.99) is None
