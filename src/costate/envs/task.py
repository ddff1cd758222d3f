"""Tasks as environments are given them: by name, as a class, or ready."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from costate.core.names import did_you_mean
from costate.train.registry import find_task, loaded
from costate.train.trainable import Trainable


def task_of(task: Any, options: dict[str, Any]) -> Trainable:
    """Return a task with changed options.

    task: a task; its class; its name ("reach"), the file it is in ("my_task.py"), or "module:Class".
    """
    if isinstance(task, str):
        task = loaded(task) if ":" in task and ".py" not in task else find_task(task)
    if isinstance(task, type):
        task = task()
    if not isinstance(task, Trainable):
        raise TypeError(
            f"an environment is made of a trainable task, its class or its name, not of a {type(task).__name__}"
        )
    if not options:
        return task
    known = [f.name for f in fields(task.options)]
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
            raise TypeError(f"task '{task.name}' has no option {name!r}; {hint}")
    return type(task)(replace(task.options, **options))
