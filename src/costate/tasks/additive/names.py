"""The tasks by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from costate.core.names import unknown
from costate.tasks.additive.history import HistoryTask
from costate.tasks.additive.identify import ThermocoupleTask
from costate.tasks.additive.meltpool import MeltPoolTask
from costate.tasks.additive.treatment import TreatmentTask

PrintTask = HistoryTask | TreatmentTask | MeltPoolTask | ThermocoupleTask
PRINT_TASKS: dict[str, PrintTask] = {
    "am_history": HistoryTask(),
    "am_treatment": TreatmentTask(),
    "am_meltpool": MeltPoolTask(),
    "am_identify": ThermocoupleTask(),
}
"""Name -> task with its defaults."""


def print_task(name: str, **changes: Any) -> PrintTask:
    """Return a task by name, with other options where they are given and not None."""
    if name not in PRINT_TASKS:
        raise ValueError(unknown("task", name, PRINT_TASKS))
    return replace(PRINT_TASKS[name], **{k: v for k, v in changes.items() if v is not None})
