"""`costate solve am_...` and `costate solve smoke_...`: problems of printed parts and of fluids, and their report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from costate.core.display import number
from costate.report import Report
from costate.tasks.additive.names import PRINT_TASKS, print_task
from costate.tasks.additive.problem import Found
from costate.tasks.smoke.names import flow_task

if TYPE_CHECKING:
    from costate.cli.solve import Options
    from costate.tasks.smoke.problem import FoundFlow


def solve_printed(options: Options, starts: int, tell: Callable[[str], None]) -> tuple[Report, str]:
    """Solve some problems; return the page, and what to say of it."""
    if options.method is not None:
        raise ValueError(
            f"--method is {options.method!r}; a task of printed parts or fluids has one method of its own: leave it out"
        )
    by_name = print_task if options.task in PRINT_TASKS else flow_task
    task = by_name(options.task, size=options.size, iterations=options.iterations)
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


def show(page: Report, found: Found | FoundFlow) -> None:
    """Add what was found: the growing part or grids over time, curves, the loss over iterations, tables."""
    if not isinstance(found, Found):
        _films(page, found)
    elif found.model is not None and found.T is not None and found.times is not None:
        model = found.model
        page.part(model.mesh, found.times, found.T, title="Temperature", unit="K", path=model.path)
    with page.row():
        for title, (x, series, label_x, label_y) in found.curves.items():
            page.plot(series, x, title=title, x_label=label_x, y_label=label_y)
        page.plot(
            {"loss": found.losses}, title="Loss", x_label="iteration", y_label="loss", log_y=min(found.losses) > 0
        )
    if isinstance(found, Found) and found.rows:
        page.table(found.rows, caption="Values with their 95 % intervals")


def _films(page: Report, found: FoundFlow) -> None:
    for title, film in found.films.items():
        page.grid(
            film.times, film.values, title, cell=film.cell, unit=film.unit, limits=film.limits, play=len(film.times) > 1
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else number(value, 4)
