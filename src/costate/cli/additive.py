"""`costate solve am_...`: problems of printed parts, and their report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from costate.core.display import number
from costate.report import Report
from costate.tasks.additive.names import print_task

if TYPE_CHECKING:
    from costate.cli.solve import Options
    from costate.tasks.additive.problem import Found


def solve_printed(options: Options, starts: int, tell: Callable[[str], None]) -> tuple[Report, str]:
    """Solve some problems; return the page, and what to say of it."""
    if options.method is not None:
        raise ValueError(
            f"--method is {options.method!r}; a task of printed parts has one method of its own: leave it out"
        )
    task = print_task(options.task, size=options.size, iterations=options.iterations)
    dtype = torch.float32 if options.single else torch.float64
    begun = time.perf_counter()
    every = []
    for k in range(options.first, options.first + starts):
        label = f"problem {k}: " if starts > 1 else ""
        every.append(task.solve(k, lambda text, label=label: tell(label + text), dtype))
    seconds = time.perf_counter() - begun
    tell("writing the report")
    solved = sum(f.solved for f in every)
    lines = [f"{options.task}: {solved} of {starts} solved in {seconds:.1f} s ({task.size})"]
    for k, found in zip(range(options.first, options.first + starts), every, strict=True):
        lines += [f"  problem {k}: " + ", ".join(f"{name} {_text(value)}" for name, value in found.facts.items())]
    page = Report(f"costate solve {options.task}", task.summary)
    page.facts({"solved": f"{solved} of {starts}", "seconds, all": round(seconds, 1)} | every[0].facts)
    show(page, every[0])
    if starts > 1:
        rows = [{"problem": options.first + k, "solved": f.solved} | f.facts for k, f in enumerate(every)]
        page.table(rows, caption="All problems")
    return page, "\n".join(lines)


def show(page: Report, found: Found) -> None:
    """Add what was found: the growing part, curves, the loss over iterations, tables."""
    if found.model is not None and found.T is not None and found.times is not None:
        model = found.model
        page.part(model.mesh, found.times, found.T, title="Temperature", unit="K", path=model.path)
    with page.row():
        for title, (x, series, label_x, label_y) in found.curves.items():
            page.plot(series, x, title=title, x_label=label_x, y_label=label_y)
        page.plot(
            {"loss": found.losses}, title="Loss", x_label="iteration", y_label="loss", log_y=min(found.losses) > 0
        )
    if found.rows:
        page.table(found.rows, caption="Values with their 95 % intervals")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else number(value, 4)
