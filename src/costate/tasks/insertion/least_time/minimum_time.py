"""The shortest motion: train with shorter and shorter horizons until the constraints can no longer be met.

Each horizon is a run folder of its own, h29, h28, ..., inside the first one, and starts with the weights of the one before.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from math import ceil
from typing import Any

import torch

from costate.core.files import write_json
from costate.tasks.insertion.guidance.guided import GuidedPolicy
from costate.tasks.insertion.least_time.bound import insertion_bound
from costate.tasks.insertion.task import Insertion
from costate.tasks.insertion.training import InsertionTraining
from costate.train.controller import save_policy
from costate.train.evaluate import evaluate, evaluate_policy
from costate.train.run import Run
from costate.train.trainer import Watch, Watching, train

Curve = list[dict[str, Any]]
"""A row per horizon, longest first."""
POOL = 1000
"""Held-out episodes whose hardest ones are looked at to find how much time a success rate needs."""
WATCHED = 1000
"""Episodes, none of them held out, in which a trained controller has to be as good as its guide alone."""


def minimum_time(
    folder: Run,
    watching: Watching = lambda stage: nullcontext(lambda row: None),
    found: Watch = lambda row: None,
) -> Curve:
    """Shrink the horizon of a trained run. Write horizon.json after each; one that is there already is not trained again.

    watching: makes what watches the training of a stage. found: is given each row of the curve: horizon, seconds (of the motion),
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
        with watching(stage) as seen:
            train(stage, seen)
        if stage.evaluation is None:
            _keep_the_better(stage)


def fastest(curve: Curve) -> dict[str, Any] | None:
    """Return the shortest horizon with enough success, if any has."""
    return next((row for row in reversed(curve) if row["met"]), None)


def compare(folder: Run, episodes: int = 20) -> dict[str, Any] | None:
    """Compare the shortest horizon of a curve with what the arm's servos and motors allow; write bound.json. None without a curve.

    least: the success that is wanted lets a few of POOL episodes fail; so many and one more take at least this long, among the
    hardest ones, whose number is `episodes`. An episode whose least time was not found counts as one that takes no time; None if
    too few were found. steps: least, in whole control steps, which every horizon is. ratio: horizon / least. steps_ratio: horizon /
    steps. possible: for every horizon of the curve, the success that these leave possible.
    """
    row = fastest(folder.found("horizon") or [])
    if row is None:
        return None
    bound = insertion_bound(replace(folder.task.options, horizon=row["horizon"]), episodes, pool=POOL)
    slowest = bound.seconds[bound.solved].sort(descending=True).values
    spared = int((1 - folder.options.horizons.success) * POOL + 1e-9)
    least = float(slowest[spared]) if spared < len(slowest) else None
    steps = ceil(least / folder.task.options.dt - 1e-9) if least else None
    result = {
        "episodes": episodes,
        "pool": POOL,
        "solved": int(bound.solved.sum()),
        "horizon": row["horizon"],
        "seconds": row["seconds"],
        "least": least,
        "slowest": float(slowest[0]) if len(slowest) else None,
        "arrival": float(bound.arrival[bound.solved].max()) if len(slowest) else None,
        "steps": steps,
        "ratio": row["seconds"] / least if least else None,
        "steps_ratio": row["horizon"] / steps if steps else None,
        "possible": [1 - int((slowest > each["seconds"]).sum()) / POOL for each in folder.found("horizon")],
    }
    write_json(folder.path / "bound.json", result)
    return result


def _row(folder: Run, stage: Run) -> dict[str, Any]:
    """Return the row of a stage; evaluate it, unless that was done."""
    options, metrics = folder.options.horizons, stage.evaluation
    if metrics is None or metrics["episodes"] < options.episodes or metrics["iteration"] < stage.options.iterations:
        metrics = evaluate(stage, options.episodes)
    row = {"horizon": stage.task.options.horizon, "run": str(stage.path.relative_to(folder.path))}
    return row | metrics | {"met": metrics["success"] >= options.success}


def _shorter(folder: Run, stage: Run) -> Run | None:
    """Return the next stage, begun or not; None if no motion within the joints' velocities is so short."""
    horizon = stage.task.options.horizon - folder.options.horizons.shrink
    path = folder.path / f"h{horizon}"
    if path.exists():
        return Run.open(path)
    if horizon < 2:
        return None
    try:
        task = Insertion(replace(folder.task.options, horizon=horizon))
    except ValueError:  # the task refuses the horizon
        return None
    options = _stage_options(folder.options)
    learnt, begun = dict(stage.policy.named_parameters()), task.policy(options).state_dict()
    weights = {name: learnt[name].detach() if name in learnt else value for name, value in begun.items()}
    return Run.create(path, task, options, weights)


def _keep_the_better(stage: Run, episodes: int = WATCHED) -> None:
    """Take a training back that has made a guided controller worse than its guide alone, in episodes to watch it."""
    trained, alone = stage.policy, stage.policy
    if not isinstance(alone, GuidedPolicy):
        return
    with torch.no_grad():
        for parameter in alone.outer.parameters():
            parameter.zero_()
    seed = stage.options.seed
    success = [
        evaluate_policy(stage.task, each, episodes, stream="watch", seed=seed).metrics.success
        for each in (trained, alone)
    ]
    if success[1] > success[0]:
        stage.save(replace(stage.checkpoint(), policy=alone.state_dict()))
        save_policy(stage)


def _stage_options(options: InsertionTraining) -> InsertionTraining:
    return replace(
        options,
        iterations=options.horizons.iterations,
        learning_rate=options.horizons.learning_rate,
        funnel_ramp=0.0,
        rest_start=1.0,
        watch_interval=0,
        minimum_time=False,
    )


def search_and_tell(folder: Run, watching: Watching) -> None:
    """Look for the shortest horizon of a run, and print what is found."""
    minimum_time(folder, watching, _print_row)
    row, o = fastest(folder.found("horizon") or []), folder.options.horizons
    wanted = f"{100 * o.success:g} % success"
    if row is None:
        print(f"no horizon reached {wanted}")
        return
    print(
        f"shortest with {wanted}: {row['horizon']} control steps, {row['seconds']:g} s, in {folder.path / row['run']}"
    )
    if o.bound_episodes > 0 and (found := compare(folder, o.bound_episodes)) is not None:
        print(_told(found))


def _told(found: dict[str, Any]) -> str:
    if found["least"] is None:
        return (
            f"least times were found for {found['solved']} of the {found['episodes']} hardest episodes: too few to say what such "
            "success takes at least (--horizons.bound-episodes for more)"
        )
    least = f"{1e3 * found['least']:.0f} ms that such success takes at least, by what servos and motors allow"
    whole = f"{found['steps_ratio']:.2f} times as long in whole control steps, of which it takes {found['steps']}"
    return f"that is {found['ratio']:.2f} times the {least}, or {whole}"


def _print_row(row: dict[str, Any]) -> None:
    print(
        f"horizon {row['horizon']:3d} ({1e3 * row['seconds']:.0f} ms): success {100 * row['success']:6.2f} %, "
        f"error {row['error_mean']:.3f} mm, {'' if row['met'] else 'too short, '}in {row['run']}",
        flush=True,
    )
