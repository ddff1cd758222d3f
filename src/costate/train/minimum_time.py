"""The shortest motion: train with shorter and shorter horizons until the constraints can no longer be met.

Each horizon is a run folder of its own, h29, h28, ..., inside the first one, and starts with the weights of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from costate.core.files import write_json
from costate.train.evaluate import evaluate
from costate.train.least_time import insertion_bound
from costate.train.plan import TrainOptions
from costate.train.run import Run
from costate.train.trainer import Watch, train

Curve = list[dict[str, Any]]
"""A row per horizon, longest first."""


def minimum_time(
    folder: Run,
    watch: Callable[[Run], AbstractContextManager[Watch]] = lambda stage: nullcontext(lambda row: None),
    found: Watch = lambda row: None,
) -> Curve:
    """Shrink the horizon of a trained run. Writes horizon.json after each; one that is there already is not trained again.

    watch: makes what watches the training of a stage. found: is given each row of the curve: horizon, seconds (of the motion),
    run (the folder), met (whether success is enough), and the fields of `costate.tasks.insertion.Metrics`.
    """
    options, curve, stage = folder.options.horizons, [], folder
    while True:
        curve.append(_row(folder, stage))
        write_json(folder.path / "horizon.json", curve)
        found(curve[-1])
        if not any(row["met"] for row in curve[-options.patience :]) and len(curve) >= options.patience:
            return curve
        following = _shorter(folder, stage)
        if following is None:
            return curve
        stage = following
        with watch(stage) as seen:
            train(stage, seen)


def fastest(curve: Curve) -> dict[str, Any] | None:
    """The shortest horizon with enough success, if any has."""
    return next((row for row in reversed(curve) if row["met"]), None)


def compare(folder: Run, episodes: int = 8) -> dict[str, Any] | None:
    """Compare the shortest horizon of a curve with what the arm's servos and motors allow; writes bound.json. None without one.

    ratio: horizon / least time of the slowest of the episodes, since a policy takes as long for all of them; possible: for
    every horizon of the curve, the share of the episodes that can be done in it at all. See `costate.train.least_time.Bound`.
    """
    row = fastest(folder.horizon_curve or [])
    if row is None:
        return None
    bound = insertion_bound(replace(folder.options.task, horizon=row["horizon"]), episodes)
    slowest = float(bound.seconds.max())
    result = {
        "episodes": episodes,
        "solved": int(bound.solved.sum()),
        "horizon": row["horizon"],
        "seconds": row["seconds"],
        "least": slowest,
        "least_mean": float(bound.seconds.mean()),
        "arrival": float(bound.arrival.max()),
        "ratio": row["seconds"] / slowest,
        "possible": [bound.possible(each["seconds"]) for each in folder.horizon_curve or []],
    }
    write_json(folder.path / "bound.json", result)
    return result


def _row(folder: Run, stage: Run) -> dict[str, Any]:
    """Evaluate a stage, unless that was done."""
    options, metrics = folder.options.horizons, stage.evaluation
    if metrics is None or metrics["episodes"] < options.episodes or metrics["iteration"] < stage.options.iterations:
        metrics = evaluate(stage, options.episodes)
    row = {"horizon": stage.options.task.horizon, "run": str(stage.path.relative_to(folder.path))}
    return row | metrics | {"met": metrics["success"] >= options.success}


def _shorter(folder: Run, stage: Run) -> Run | None:
    """The next stage, begun or not; None if no motion within the joints' velocities is so short."""
    horizon = stage.options.task.horizon - folder.options.horizons.shrink
    path = folder.path / f"h{horizon}"
    if path.exists():
        return Run.open(path)
    if horizon < 2:
        return None
    options = _stage_options(folder.options, horizon)
    try:
        return Run.create(path, options, stage.checkpoint().policy)
    except ValueError:  # the task refuses the horizon
        return None


def _stage_options(options: TrainOptions, horizon: int) -> TrainOptions:
    return replace(
        options,
        task=replace(options.task, horizon=horizon),
        iterations=options.horizons.iterations,
        learning_rate=options.horizons.learning_rate,
        funnel_ramp=0.0,
        rest_start=1.0,
        watch_interval=0,
        minimum_time=False,
    )
