"""The report of a hand's run shows the episodes worth a look, each once."""

from __future__ import annotations

import torch

from costate.tasks.manipulation.show.report import notable


def test_failures_come_first_and_every_episode_once() -> None:
    error = torch.tensor([0.5, 9.0, 0.1, float("nan"), 0.3, 7.0, 8.0, 0.2])
    success = torch.tensor([True, False, True, False, True, False, False, True])
    assert notable(error, success) == {
        "failure 1": 3,
        "failure 2": 1,
        "failure 3": 6,
        "best success": 2,
        "median success": 4,
        "worst success": 0,
    }


def test_few_successes_are_not_repeated() -> None:
    error = torch.tensor([0.4, 0.2])
    assert notable(error, torch.tensor([True, True])) == {"best success": 1, "worst success": 0}
    assert notable(error, torch.tensor([False, True])) == {"failure 1": 0, "best success": 1}
    assert notable(error, torch.tensor([False, False])) == {"failure 1": 0, "failure 2": 1}
