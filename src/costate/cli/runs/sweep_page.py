"""The page about a sweep: its trainings side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from costate.report.report import Report
from costate.report.training import duration
from costate.train.shards.sweep import HIGHER, Entry, score

CURVES = 8
"""Largest number of curves in a plot: as many as there are colours."""


def sweep_page(given: Sequence[Entry], by: str = "loss") -> Report:
    """Return a page about the trainings of a sweep. by: metric that says which is better."""
    entries = sorted(given, key=lambda e: (not e.run.finished, score(e.run, by), e.run.path.name))
    groups = {s: [e for e in entries if e.setting == s] for s in dict.fromkeys(e.setting for e in entries)}
    ended = sum(e.run.finished for e in entries)
    seconds = sum(_last(e).get("processor_seconds", 0.0) for e in entries)
    task = entries[0].run.task
    report = Report(
        f"Sweep of {task.name}", f"{task.summary}; {len(entries)} runs in {entries[0].run.path.parent.name}"
    )
    report.facts(
        {
            "runs": len(entries),
            "trained to the end": ended,
            f"{by} of the best run": _shown(entries[0], by),
            "processor time": duration(seconds),
        }
    )
    report.text(f"Best run: {entries[0].setting}, seed {entries[0].seed}.")
    _curves(report, groups, by)
    report.section("Options")
    report.text(
        "Mean and standard deviation over the seeds, of runs that were trained to the end; best first. "
        f"{by}: mean of the last tenth of a run's rows of metrics."
    )
    report.table([_of_group(setting, runs, by) for setting, runs in groups.items()])
    report.section("Runs")
    report.table([_of_run(e, by) for e in entries])
    return report


def _curves(report: Report, groups: dict[str, list[Entry]], by: str) -> None:
    """Add the metric and the success over the iterations: means over the seeds."""
    report.section("Training")
    shown = dict(list(groups.items())[:CURVES])
    with report.row():
        for name in dict.fromkeys((by, "success")):
            x = sorted(
                {row["iteration"] for runs in shown.values() for e in runs for row in e.run.metrics() if name in row}
            )
            if len(x) < 2:
                continue
            series = {setting: _mean_curve(runs, name, x) for setting, runs in shown.items()}
            positive = all(np.nanmin(y) > 0 for y in series.values() if np.isfinite(y).any())
            title = f"{name}, mean over the seeds that were trained so far"
            report.plot(
                series, x, title=title, x_label="iteration", log_y=positive and name not in HIGHER, markers=True
            )
    if len(groups) > CURVES:
        report.text(f"The best {CURVES} of {len(groups)} combinations of options are drawn.")


def _mean_curve(runs: Sequence[Entry], name: str, x: Sequence[int]) -> np.ndarray:
    """Return the mean of a metric over the runs that have it at each iteration."""
    rows = [{row["iteration"]: row[name] for row in e.run.metrics() if name in row} for e in runs]
    found = [[r[k] for r in rows if k in r] for k in x]
    return np.array([np.mean(values) if values else np.nan for values in found])


def _of_group(setting: str, runs: Sequence[Entry], by: str) -> dict[str, Any]:
    ended = [e for e in runs if e.run.finished]
    row: dict[str, Any] = {"options": setting, "runs": len(runs), "to the end": len(ended)}
    for name in dict.fromkeys((by, "success")):
        values = [-score(e.run, name) if name in HIGHER else score(e.run, name) for e in ended]
        values = [v for v in values if np.isfinite(v)]
        row[name] = float(np.mean(values)) if values else None
        row[f"{name}, deviation"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return row


def _of_run(entry: Entry, by: str) -> dict[str, Any]:
    last = _last(entry)
    state = "diverged" if entry.run.found("diverged") else "trained" if entry.run.finished else "stopped early"
    return {
        "run": entry.run.path.name,
        "options": entry.setting,
        "seed": entry.seed,
        "state": state,
        "iterations": last.get("iteration", 0),
        by: _shown(entry, by),
        "success": last.get("success"),
        "processor seconds": last.get("processor_seconds"),
    }


def _shown(entry: Entry, by: str) -> float | None:
    value = score(entry.run, by)
    return None if not np.isfinite(value) else -value if by in HIGHER else value


def _last(entry: Entry) -> dict[str, Any]:
    return (entry.run.metrics() or [{}])[-1]
