"""The curves of a training, and numbers as one says them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from costate.core.display import number
from costate.report.report import Report
from costate.train.progress import terms_of
from costate.train.run import Run

SHOWN, SMALLEST = 7, 1e-4
"""Number of terms in the plot of the loss, as many as there are colours beside its own; values below SMALLEST are not drawn."""


def training_section(report: Report, source: Run, gradient: bool = True) -> None:
    """Add the curves of a training. gradient: it follows one, whose length is shown."""
    rows = source.metrics()
    if len(rows) < 2:
        return
    report.section("Training")
    iteration, looked = [row["iteration"] for row in rows], [row for row in rows if "success" in row]
    terms = _terms(rows, source)
    measured = source.task.measured
    errors = {f"{name.partition('_')[0]} [{unit}]": [row[name] for row in rows] for name, unit in measured.items()}
    with report.row():
        report.plot(terms, iteration, title="Loss and its terms", x_label="iteration", log_y=True)
        if errors:
            report.plot(errors, iteration, title="Errors, mean of the batch", x_label="iteration", log_y=True)
        if len(looked) > 1:
            success = {"success [%]": [100 * row["success"] for row in looked]}
            seconds = [row["seconds"] for row in looked]
            report.plot(success, seconds, title="Success in new episodes", x_label="training time [s]", markers=True)
        if gradient:
            gradient_plot(report, source, rows)


def gradient_plot(report: Report, source: Run, rows: list[dict[str, Any]]) -> None:
    """Add the length of the gradient over the iterations."""
    report.plot(
        {"longest gradient": [row["gradient_norm"] for row in rows]},
        [row["iteration"] for row in rows],
        title="Length of the gradient, before clipping",
        x_label="iteration",
        log_y=True,
        levels={"clipped above": source.options.clip},
    )


def _terms(rows: list[dict[str, Any]], source: Run) -> dict[str, list[float]]:
    """Return the loss and the largest of its terms."""
    names = terms_of(rows[0], source.task.measured)
    largest = sorted(names, key=lambda name: -sum(row[name] for row in rows))[:SHOWN]
    chosen = ["loss", *(name for name in names if name in largest)]
    return {name: [row[name] if row[name] > SMALLEST else np.nan for row in rows] for name in chosen}


def set_fields(options: Any) -> str:
    """Return the fields of a dataclass that are not their default, as text."""
    default = asdict(type(options)())
    changed = {name: value for name, value in asdict(options).items() if value != default[name]}
    texts = {name: number(value, 6) if isinstance(value, float) else str(value) for name, value in changed.items()}
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items())


def duration(seconds: float) -> str:
    """Return a time as it is said: 48 s, 1 min 30 s, 12 min, 2 h 5 min."""
    if seconds < 59.5:
        return f"{number(seconds, 2)} s"
    if seconds < 600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    hours, left = divmod(round(seconds / 60), 60)
    return f"{hours} h {left} min" if hours else f"{left} min"


def large(count: int) -> str:
    """Return a large number as it is said."""
    return f"{number(count / 1e6)} M" if count >= 1e6 else f"{count:,}"
