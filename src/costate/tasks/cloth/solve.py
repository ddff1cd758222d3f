"""Problems of cloth, solved one after the other, and their report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from costate.core.display import number
from costate.draw.cloth.motion import record_cloth
from costate.draw.recording import Recording
from costate.report import Report
from costate.tasks.cloth.methods import METHODS
from costate.tasks.cloth.names import CLOTH_TASKS
from costate.tasks.cloth.problem import ClothFound


def solve_cloth(
    name: str, numbers: Sequence[int], tell: Callable[[str], None], **changes: Any
) -> tuple[Report, str, Recording]:
    """Solve some problems of a task, with other options where they are not None; return the page, what to say of it, and the motion
    that was found for the first."""
    task = replace(CLOTH_TASKS[name], **{k: v for k, v in changes.items() if v is not None})
    starts = len(numbers)
    begun = time.perf_counter()
    every = [task.solve(k, lambda text, k=k: tell(f"problem {k}: {text}")) for k in numbers]
    seconds = time.perf_counter() - begun
    solved = sum(f.solved for f in every)
    lines = [f"{name}: {solved} of {starts} solved in {seconds:.1f} s by {task.method} (of {', '.join(METHODS)})"]
    for k, found in zip(numbers, every, strict=True):
        told = [
            f"{what} {value if isinstance(value, str) else number(value, 4)}" for what, value in found.facts.items()
        ]
        lines.append(f"  problem {k}: " + ", ".join(told))
    page = Report(f"costate solve {name}", task.summary)
    first = every[0]
    page.facts(
        {"solved": f"{solved} of {starts}", "method": task.method, "seconds, all": round(seconds, 1)} | first.facts
    )
    page.recording(recorded(first), play=True, speed=0.5)
    with page.row():
        page.plot({"loss": first.losses}, title="What is left", x_label="evaluation", log_y=True)
        if first.rows:
            page.table(first.rows, caption="What was found")
    if starts > 1:
        page.table(
            [{"problem": k, "solved": f.solved} | f.facts for k, f in zip(numbers, every, strict=True)],
            caption="All problems",
        )
    return page, "\n".join(lines), recorded(first)


def recorded(found: ClothFound) -> Recording:
    """Return what was found as a recording."""
    return record_cloth(found.model, found.times, found.x, robot=found.robot, poses=found.poses, drawn=found.drawn)
