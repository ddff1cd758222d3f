"""Robustness: how a trained policy fares when the world is not the one it was trained in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from torch import nn

from costate.core.files import write_json
from costate.scale.choose import Cluster, executor
from costate.scale.executor import Executor
from costate.train.evaluate import ALONE, at_least_one
from costate.train.run import Run
from costate.train.shards.judging import Judging, cases, judged_by, unpacked
from costate.train.trainable import Trainable

Found = Callable[[str, Any], None]
"""Function that is given the name of a case, and its metrics."""


def robustness_of(
    task: Trainable,
    policy: nn.Module,
    episodes: int = 1000,
    seed: int = 0,
    watch: Found = lambda name, metrics: None,
    workers: Executor | None = None,
) -> dict[str, Any]:
    """Return the metrics of every case, by name, in the task's world, and in each of its other `worlds`. Starts and targets are the
    same in all of them.

    watch: is given each as it is found. workers: they have the same policy, see `judged_by`.
    """
    shards, found, work = cases(task, episodes, seed), {}, Judging.of(task, policy)
    answers = workers.map(list(shards.values())) if workers else map(work.shard, shards.values())
    for name, answer in zip(shards, answers, strict=True):
        found[name] = task.summarise(unpacked(task, answer))
        watch(name, found[name])
    return found


def robustness(
    folder: Run,
    episodes: int | None = None,
    seed: int = 0,
    watch: Found = lambda name, metrics: None,
    where: Cluster = ALONE,
) -> dict[str, Any]:
    """Try a run's policy in every case of its task; write robustness.json: a row per case, with the metrics.

    Args:
        folder: Run whose policy it is.
        episodes: Number of episodes of a case; None: a tenth of an evaluation (`Trainable.judged`).
        seed: Seed of the episodes.
        watch: Called with every row.
        where: Who simulates the episodes.
    """
    episodes = int(folder.task.judged // 10 if episodes is None else episodes)
    at_least_one(episodes)
    if not folder.task.cases() and not folder.task.worlds():
        raise ValueError(
            f"task '{folder.task.name}' has no cases to try a policy in: give it a method `cases` or `worlds`"
        )
    with ExitStack() as stack:
        workers = None if where.alone else stack.enter_context(executor(judged_by(folder), where))
        found = robustness_of(folder.task, folder.policy, episodes, seed, watch, workers)
    write_json(folder.path / "robustness.json", [{"case": name} | m.as_dict() for name, m in found.items()])
    return found
