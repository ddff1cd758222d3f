"""Evaluation on episodes that no training has seen: in float64, in the task's own world."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from costate.core.files import write_json
from costate.train.episode import Episodes, Trajectory, joined, rollout
from costate.train.policy import acting
from costate.train.run import Run
from costate.train.streams import CHUNK, generator
from costate.train.trainable import Trainable, Variant


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation."""

    metrics: Any
    """Metrics of all episodes, see `Trainable.summarise`."""
    verdict: Any
    """Verdict of each episode, see `Trainable.judge`."""
    parts: tuple[Trajectory, ...] = ()
    """Trajectories, CHUNK episodes each; none unless they were asked for."""


def evaluate_policy(
    task: Trainable,
    policy: nn.Module,
    episodes: int,
    disturbances: Any = None,
    *,
    stream: str = "held out",
    seed: int = 0,
    keep: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Evaluation:
    """Judge a policy. The episodes depend on their number, the task, the disturbances, the stream and the seed alone.

    keep: return the trajectories, too.
    """
    given = {} if disturbances is None else {"disturbances": disturbances}
    verdicts, parts = [], []
    for start in range(0, episodes, CHUNK):
        size = min(CHUNK, episodes - start)
        drawn = task.draw(size, generator(stream, seed, start // CHUNK), torch.float64, **given)
        trajectory = tried(task, policy, drawn)
        verdicts.append(task.judge(trajectory))
        parts += [trajectory] * keep
        progress(start + size)
    verdict = joined(verdicts)
    return Evaluation(task.summarise(verdict), verdict, tuple(parts))


def tried(task: Trainable, policy: nn.Module, episodes: Episodes, world: Any = None) -> Trajectory:
    """Return what a policy does in episodes, in float64 and without gradients."""
    with torch.no_grad():
        return rollout(task, acting(copy.deepcopy(policy).double()), episodes, world)


def evaluate(
    folder: Run,
    episodes: int = 10_000,
    *,
    variant: str = "",
    disturbances: Any = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Evaluate a run's policy; write evaluation.json, or evaluation_VARIANT.json for one of the task's variants.

    disturbances: None, or the default: those of the task, if it has any. Results with others are returned, not written:
    evaluation.json is about the task itself.
    """
    at_least_one(episodes)
    task = folder.task
    disturbances = None if disturbances == task.disturbances else disturbances
    if variant:
        task = type(task)(_variant(task, variant).change(task.options))
    found = evaluate_policy(task, folder.policy, episodes, disturbances, seed=seed, progress=progress)
    point = folder.checkpoint()
    result = found.metrics.as_dict() | {
        "seed": seed,
        "variant": variant,
        "disturbances": {} if disturbances is None else asdict(disturbances),
        "iteration": point.iteration,
        "training_seconds": point.seconds,
        "training_control_steps": point.control_steps,
    }
    if disturbances is None:
        write_json(folder.path / f"evaluation{'_' if variant else ''}{variant}.json", result)
    return result


def at_least_one(episodes: int) -> None:
    """Refuse to judge nothing."""
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be at least 1")


def _variant(task: Trainable, name: str) -> Variant:
    if name not in task.variants:
        raise ValueError(f"task '{task.name}' has no variant {name!r}; it has {', '.join(task.variants) or 'none'}")
    return task.variants[name]
