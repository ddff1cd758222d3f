"""`costate play`: a policy of any task at work on a page."""

from __future__ import annotations

import torch

from costate.tasks.reach_position import ReachOptions, ReachPosition
from costate.train.controller import Controller
from costate.viewer.play import STAY, Play, start_play


def test_any_task_can_be_played() -> None:
    """Episodes come one after the other, are judged and counted; goals are marked."""
    task = ReachPosition(ReachOptions(steps=12, hold=3))
    policy = task.policy(task.training, torch.Generator().manual_seed(0))
    page, shown = start_play(Play, task, Controller(task.network(policy), {"task": task.name}), 8360)
    try:
        first, steps = shown.episodes.goal, task.steps + round(STAY / task.world.dt)
        for _ in range(2 * steps + 2):
            shown.live.step()
        assert shown.tried == 2 and shown.succeeded == 0 and shown.last_error > 50
        assert not torch.equal(shown.episodes.goal, first) and "0 of 2" in shown.told()
    finally:
        page.close()
