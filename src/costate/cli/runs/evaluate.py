"""`costate evaluate RUN`: judge a trained controller on episodes it has never seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from costate.tasks.insertion import Disturbances


@dataclass(frozen=True)
class Options:
    run: Annotated[Path, tyro.conf.Positional]
    """The run folder."""
    episodes: int = 10_000
    """How many."""
    wide: bool = False
    """With twice the ranges of start poses and targets; written to evaluation_wide.json."""
    seed: int = 0
    """Of the episodes; the same for all runs, so that their results can be compared."""
    disturbances: Disturbances = field(default_factory=Disturbances)
    """What the controller is tested against; if any, the result is printed, not written."""
    threads: int = 2
    """Of torch and the kernels."""


def run(options: Options) -> None:
    import torch
    from rich.progress import Progress

    from costate.train.evaluate import evaluate
    from costate.train.run import Run

    torch.set_num_threads(options.threads)
    folder = Run.open(options.run)
    with Progress(transient=True) as bar:
        task = bar.add_task("episodes", total=options.episodes)
        found = evaluate(
            folder,
            options.episodes,
            wide=options.wide,
            disturbances=options.disturbances,
            seed=options.seed,
            progress=lambda done: bar.update(task, completed=done),
        )
    _print(found, folder.options.task.hold)


def _print(found: dict[str, Any], hold: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    def percent(name: str) -> str:
        return f"{100 * found[name]:.2f} %"

    rows = {
        "success": percent("success"),
        "error, mean": f"{found['error_mean']:.3f} mm",
        "error, 95 %": f"{found['error_95']:.3f} mm",
        "error, worst": f"{found['error_worst']:.3f} mm",
        "tilt, mean": f"{found['tilt_mean']:.3f} deg",
        "tilt, worst": f"{found['tilt_worst']:.3f} deg",
        f"stayed in place for {hold} steps": percent("kept_place"),
        f"stayed still for {hold} steps": percent("kept_still"),
        "no penetration": percent("no_penetration"),
        "penetration, worst": f"{found['penetration_worst']:.3f} mm",
        "within limits": percent("within_limits"),
        "peak acceleration, mean": f"{found['peak_acceleration']:.1f} rad/s^2",
        "peak jerk, mean": f"{found['peak_jerk']:.0f} rad/s^3",
        "time of the motion": f"{found['seconds']:g} s",
        "training": f"{found['training_seconds']:.1f} s, {found['training_control_steps']:,} control steps",
    }
    table = Table("", f"{found['episodes']:,} episodes", box=box.SIMPLE)
    for name, value in rows.items():
        table.add_row(name, value)
    Console().print(table)
