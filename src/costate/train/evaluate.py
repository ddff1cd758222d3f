"""Evaluation on episodes that no training has seen: in float64, in the world with contact."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch

from costate.core.files import write_json
from costate.tasks.insertion import (
    Disturbances,
    Insertion,
    Metrics,
    Policy,
    Verdict,
    draw,
    judge,
    run,
    summarise,
)
from costate.tasks.insertion.streams import CHUNK
from costate.train.plan import generator
from costate.train.run import Run


@dataclass(frozen=True)
class Evaluation:
    """What was found."""

    metrics: Metrics
    verdict: Verdict
    """Per episode."""


def evaluate_policy(
    task: Insertion,
    policy: Policy,
    episodes: int,
    disturbances: Disturbances = Disturbances(),  # noqa: B008  (frozen)
    *,
    stream: str = "held out",
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> Evaluation:
    """Judge a policy. The episodes depend on their number, the task, the disturbances, the stream and the seed alone."""
    policy = copy.deepcopy(policy).double()
    verdicts = []
    with torch.no_grad():
        for start in range(0, episodes, CHUNK):
            size = min(CHUNK, episodes - start)
            drawn = draw(task, size, generator(stream, seed, start // CHUNK), disturbances, torch.float64)
            verdicts.append(judge(task, run(task, task.world, policy, drawn)))
            progress(start + size)
    parts = {f.name: [getattr(v, f.name) for v in verdicts] for f in fields(Verdict)}
    verdict = Verdict(**{name: torch.cat(part) for name, part in parts.items()})
    return Evaluation(summarise(task, verdict), verdict)


def evaluate(
    folder: Run,
    episodes: int = 10_000,
    *,
    wide: bool = False,
    disturbances: Disturbances = Disturbances(),  # noqa: B008  (frozen)
    seed: int = 0,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Evaluate a run's policy; write evaluation.json, or evaluation_wide.json.

    Results with disturbances are returned, not written: evaluation.json is about the task itself.
    """
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; it must be at least 1")
    task = Insertion(folder.options.task.wide()) if wide else folder.task
    found = evaluate_policy(task, folder.policy, episodes, disturbances, seed=seed, progress=progress)
    point = folder.checkpoint()
    result = found.metrics.as_dict() | {
        "seed": seed,
        "wide": wide,
        "disturbances": asdict(disturbances),
        "iteration": point.iteration,
        "training_seconds": point.seconds,
        "training_control_steps": point.control_steps,
    }
    if disturbances == Disturbances():
        write_json(folder.path / ("evaluation_wide.json" if wide else "evaluation.json"), result)
    return result
