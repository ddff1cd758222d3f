"""Robustness: how a trained policy fares when the world is not the one it was trained in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from costate.core.files import write_json
from costate.train.episode import Episodes
from costate.train.evaluate import at_least_one, tried
from costate.train.run import Run
from costate.train.streams import generator
from costate.train.trainable import Trainable

Found = Callable[[str, Any], None]
"""Function that is given the name of a case, and its metrics."""


def robustness_of(
    task: Trainable, policy: nn.Module, episodes: int = 1000, seed: int = 0, watch: Found = lambda name, metrics: None
) -> dict[str, Any]:
    """Return the metrics of every case, by name, in the task's world, and in each of its other `worlds`. Starts and targets are the
    same in all of them.

    watch: is given each as it is found.
    """
    found = {}

    def look(name: str, drawn: Episodes, world: Any = None) -> None:
        found[name] = task.summarise(task.judge(tried(task, policy, drawn, world)))
        watch(name, found[name])

    for name, case in task.cases().items():
        look(name, case(episodes, generator("held out", seed)))
    for name, made in task.worlds().items():
        look(name, task.draw(episodes, generator("held out", seed), torch.float64), made())
    return found


def robustness(
    folder: Run, episodes: int = 1000, seed: int = 0, watch: Found = lambda name, metrics: None
) -> dict[str, Any]:
    """Try a run's policy in every case of its task; write robustness.json: a row per case, with the metrics."""
    at_least_one(episodes)
    if not folder.task.cases() and not folder.task.worlds():
        raise ValueError(
            f"task '{folder.task.name}' has no cases to try a policy in: give it a method `cases` or `worlds`"
        )
    found = robustness_of(folder.task, folder.policy, episodes, seed, watch)
    write_json(folder.path / "robustness.json", [{"case": name} | m.as_dict() for name, m in found.items()])
    return found
