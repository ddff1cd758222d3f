"""Evaluation on episodes that no training has seen: in float64, in the task's own world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from costate.core.files import write_json
from costate.core.tensors import read_tensors
from costate.scale.choose import Cluster, executor
from costate.train.episode import Trajectory, joined
from costate.train.run import FIRST, Run
from costate.train.shards.judging import Judging, chunks, judged_by, unpacked, varied
from costate.train.shards.judging import tried as tried
from costate.train.trainable import Trainable

BESIDE = 1000
"""Largest number of episodes in which a policy without what it has learnt is judged."""
ALONE = Cluster()
"""Work without workers."""


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
    work = Judging.of(task, policy, disturbances)
    verdicts, parts, done = [], [], 0
    for shard in chunks(episodes, stream, seed):
        verdict, trajectory = work.judged(shard)
        verdicts.append(verdict)
        parts += [trajectory] * keep
        done += shard.note["size"]
        progress(done)
    verdict = joined(verdicts)
    return Evaluation(task.summarise(verdict), verdict, tuple(parts))


def evaluate(
    folder: Run,
    episodes: int | None = None,
    *,
    variant: str = "",
    disturbances: Any = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
    where: Cluster = ALONE,
) -> dict[str, Any]:
    """Evaluate a run's policy; write evaluation.json, or evaluation_VARIANT.json for one of the task's variants.

    episodes: number of episodes; None: as many as suit the task (`Trainable.judged`).
    disturbances: None, or the default: those of the task, if it has any. Results with others are returned, not written:
    evaluation.json is about the task itself. where: who simulates the episodes.
    """
    episodes = int(folder.task.judged if episodes is None else episodes)
    at_least_one(episodes)
    disturbances = None if disturbances == folder.task.disturbances else disturbances
    task, told = varied(folder.task, variant), None if disturbances is None else asdict(disturbances)
    task.suits(folder.policy)
    if where.alone:
        metrics = evaluate_policy(task, folder.policy, episodes, disturbances, seed=seed, progress=progress).metrics
    else:
        verdicts, shards = [], list(chunks(episodes, "held out", seed))
        with executor(judged_by(folder, variant, told), where) as workers:
            for answer in workers.map(shards):
                verdicts.append(unpacked(task, answer))
                progress(sum(len(v.success) for v in verdicts))
        metrics = task.summarise(joined(verdicts))
    point = folder.checkpoint()
    result = metrics.as_dict() | {
        "compared": compared(folder, task, episodes, disturbances, seed),
        "seed": seed,
        "variant": variant,
        "disturbances": told or {},
        "iteration": point.iteration,
        "training_seconds": point.seconds,
        "training_control_steps": point.control_steps,
    }
    if disturbances is None:
        write_json(folder.path / f"evaluation{'_' if variant else ''}{variant}.json", result)
    return result


def compared(
    folder: Run, task: Trainable, episodes: int, disturbances: Any = None, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """Return the metrics of the same policy without what it has learnt: what does as well was not learnt.

    Its rows: "before training", with the weights that the training began with, and "weights at zero", where a network adds nothing
    to what else is in a policy. At most BESIDE episodes each.
    """
    policy, found = folder.policy, {}
    weights = {"weights at zero": {name: torch.zeros_like(w) for name, w in policy.named_parameters()}}
    if (file := folder.path / FIRST).is_file():
        weights = {"before training": read_tensors(file)[0]} | weights
    for name, each in weights.items():
        policy.load_state_dict(policy.state_dict() | each)
        found[name] = evaluate_policy(task, policy, min(episodes, BESIDE), disturbances, seed=seed).metrics.as_dict()
    return found


def at_least_one(episodes: int) -> None:
    """Refuse to judge nothing."""
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be at least 1")
