"""`costate solve soft_...`: problems of soft bodies, and their report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from costate.cli.solve import WATCHED
from costate.core.display import number
from costate.report import Report
from costate.tasks.soft.names import soft_task

if TYPE_CHECKING:
    from costate.cli.solve import Options
    from costate.tasks.soft.found import SoftFound


def solve_soft(options: Options, starts: int, tell: Callable[[str], None]) -> tuple[Report, str]:
    """Solve some problems; return the page, and what to say of it."""
    if options.method is not None:
        raise ValueError(f"--method is {options.method!r}; a task of soft bodies has one of its own: leave it out")
    task = soft_task(options.task, iterations=options.iterations, policy=options.policy or None)
    dtype = torch.float32 if options.single else torch.float64
    begun = time.perf_counter()
    numbers = range(options.first, options.first + starts)
    every = [task.solve(k, lambda text, k=k: tell(f"problem {k}: {text}"), dtype) for k in numbers]
    seconds = time.perf_counter() - begun
    solved = sum(f.solved for f in every)
    lines = [f"{options.task}: {solved} of {starts} solved in {seconds:.1f} s"]
    for k, found in zip(numbers, every, strict=True):
        lines += [f"  problem {k}: " + ", ".join(f"{name} {_text(value)}" for name, value in found.facts.items())]
    page = Report(f"costate solve {options.task}", task.summary)
    page.facts({"solved": f"{solved} of {starts}", "seconds, all": round(seconds, 1)} | every[0].facts)
    show(page, every[0])
    if starts > 1:
        rows = [{"problem": k, "solved": f.solved} | f.facts for k, f in zip(numbers, every, strict=True)]
        page.table(rows, caption="All problems")
    return page, "\n".join(lines)


def show(page: Report, found: SoftFound) -> None:
    """Add what was found: the moving particles, curves, the loss over iterations, tables."""
    from costate.report.particles import SPEEDS

    x, kinds = found.x, None
    slow = float(found.times[-1]) / WATCHED
    speed = max((s for s in SPEEDS if s <= slow), default=SPEEDS[0]) if slow < 1 else None
    if found.tools is not None:
        x = torch.cat([found.x, found.tools], -2)
        kinds = torch.cat([torch.ones(found.x.shape[-2]), torch.zeros(found.tools.shape[-2])])
    page.particles(
        found.times, x, kinds, "1: matter, 0: what pushes it" if kinds is not None else "", speed=speed, play=True
    )
    if found.robot is not None:
        page.replay(*found.robot)
    with page.row():
        for title, (x, series, label_x, label_y) in found.curves.items():
            page.plot(series, x, title=title, x_label=label_x, y_label=label_y)
        page.plot(
            {"loss": found.losses}, title="Loss", x_label="iteration", y_label="loss", log_y=min(found.losses) > 0
        )
    if found.rows:
        page.table(found.rows, caption="What was found")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else number(value, 4)
