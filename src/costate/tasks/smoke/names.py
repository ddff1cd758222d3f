"""The tasks by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from costate.core.names import unknown
from costate.tasks.smoke.drag import DragTask
from costate.tasks.smoke.jet import JetTask
from costate.tasks.smoke.target import TargetTask

FlowTask = TargetTask | JetTask | DragTask
FLOW_TASKS: dict[str, FlowTask] = {"smoke_target": TargetTask(), "smoke_jet": JetTask(), "smoke_drag": DragTask()}
"""Name -> task with its defaults."""


def flow_task(name: str, **changes: Any) -> FlowTask:
    """Return a task by name, with other options where they are given and not None."""
    if name not in FLOW_TASKS:
        raise ValueError(unknown("task", name, FLOW_TASKS))
    return replace(FLOW_TASKS[name], **{k: v for k, v in changes.items() if v is not None})
