"""How an insertion run was trained: curves, the shortest horizon, where it comes from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from costate.report.report import Report
from costate.train.run import Run

SHOWN, SMALLEST = 7, 1e-4
"""Terms in the plot of the loss, as many as there are colours beside its own, and what of them is too small to be drawn."""


def training_section(report: Report, source: Run) -> None:
    rows = source.metrics()
    if len(rows) < 2:
        return
    report.section("Training")
    iteration, looked = [row["iteration"] for row in rows], [row for row in rows if "success" in row]
    terms = _terms(rows)
    errors = {"position [mm]": [r["error_mm"] for r in rows], "tilt [degrees]": [r["tilt_deg"] for r in rows]}
    with report.row():
        report.plot(terms, iteration, title="Loss and its terms", x_label="iteration", log_y=True)
        report.plot(errors, iteration, title="Errors at the seat, mean of the batch", x_label="iteration", log_y=True)
        if len(looked) > 1:
            success = {"success [%]": [100 * row["success"] for row in looked]}
            seconds = [row["seconds"] for row in looked]
            report.plot(success, seconds, title="Success in new episodes", x_label="training time [s]", markers=True)
        gradient = {"longest gradient": [row["gradient_norm"] for row in rows]}
        report.plot(
            gradient,
            iteration,
            title="Length of the gradient, before clipping",
            x_label="iteration",
            log_y=True,
            levels={"clipped above": source.options.clip},
        )


def _terms(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The loss and the largest of what it is made of, which stand between the iteration and the errors of a row."""
    names = list(rows[0])[2 : list(rows[0]).index("error_mm")]
    largest = sorted(names, key=lambda name: -sum(row[name] for row in rows))[:SHOWN]
    chosen = ["loss", *(name for name in names if name in largest)]
    return {name: [row[name] if row[name] > SMALLEST else np.nan for row in rows] for name in chosen}


def horizon_section(report: Report, source: Run) -> None:
    curve = source.horizon_curve
    if not curve:
        return
    report.section("How fast can it be?")
    report.text(
        "The horizon was shortened step by step, each training starting from the one before, until the bottle no longer arrived."
    )
    milliseconds = [1e3 * row["seconds"] for row in curve]
    success = {"success [%]": [100 * row["success"] for row in curve]}
    if (bound := source.bound) is not None:
        if len(bound["possible"]) == len(curve):
            success[f"possible at all [%], of {bound['episodes']} episodes"] = [
                100 * part for part in bound["possible"]
            ]
        report.facts(
            {
                "shortest horizon [ms]": round(1e3 * bound["seconds"]),
                "least time, slowest episode [ms]": round(1e3 * bound["least"]),
                "ratio": round(bound["ratio"], 2),
                "by velocity limits alone [ms]": round(1e3 * bound["arrival"]),
            }
        )
    report.plot(success, milliseconds, title="Success against horizon", x_label="time of the motion [ms]", markers=True)


def origin_section(report: Report, source: Run) -> None:
    report.section("Where it comes from")
    note, o = source.note, source.options
    rows = [
        ("started, finished (UTC)", f"{note.get('started')}, {note.get('finished') or 'not yet'}"),
        ("machine", f"{note.get('cpu')}, {note.get('cores')} cores, {note.get('system')}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in note.get("versions", {}).items())),
        ("training", f"{o.iterations} iterations of {o.batch} episodes, seed {o.seed}"),
        ("ranges", f"start ±{o.task.start_range:g} rad, target ±{1e3 * o.task.target_range:g} mm"),
        ("disturbances in training", _set(o.disturbances) or "none"),
        ("control", f"{o.task.horizon} steps of {1e3 * o.task.dt:g} ms, {o.task.actuation}, {o.hidden} hidden units"),
    ]
    report.table(rows, ("", ""))


def _set(options: Any) -> str:
    """The fields of a dataclass that are not their default."""
    default = type(options)()
    changed = {name: value for name, value in asdict(options).items() if value != getattr(default, name)}
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in changed.items())
