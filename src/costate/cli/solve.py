"""`costate solve TASK`: solve random problems of a task, and write a report with a replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from costate.report import Report
    from costate.train.solve import Outcome


WATCHED = 2.0
"""A replay takes about this long at least [s]: short motions are shown slowly."""


@dataclass(frozen=True)
class Options:
    task: Annotated[str, tyro.conf.Positional] = "list"
    """Task to solve: throw, golf, racecar, pendulum1 to pendulum7, push, identify_contact, reach, ...; "list" shows all."""
    starts: Annotated[int, tyro.conf.arg(aliases=["--episodes"])] = 20
    """Number of random problems."""
    first: int = 0
    """Number of the first one."""
    method: str | None = None
    """gauss_newton, ilqr, search or direct; default: what suits the task."""
    iterations: int | None = None
    """Largest number of iterations; default: as the task says."""
    out: Path = Path("out")
    """Folder for the report."""
    show: int = 3
    """Number of motions that the replay shows."""


def run(options: Options) -> None:
    from costate.train.solve import RECIPES, solve

    if options.task == "list":
        width = max(map(len, RECIPES))
        for name, row in RECIPES.items():
            print(f"{name:<{width}}  {row.make().summary} ({', '.join(row.options)})")
        return
    if options.starts < 1:
        raise ValueError(f"--starts is {options.starts}; at least one problem is needed")
    changes: dict[str, Any] = {} if options.iterations is None else {"iterations": options.iterations}
    numbers = range(options.first, options.first + options.starts)
    outcome = solve(options.task, numbers, options.method, changes)
    print(outcome)
    for name, value in outcome.facts.items():
        print(f"  {name}: {value if isinstance(value, str) else f'{value:.6g}'}")
    print(report(options.task, outcome, options.show).save(options.out / f"{options.task}.html"))


def report(name: str, outcome: Outcome, show: int = 3) -> Report:
    """Return a page with numbers, losses over iterations, the motions found, and a table of all problems."""
    from costate.report import Report

    task = outcome.task
    page = Report(f"costate solve {name}", task.summary)
    page.facts(
        {
            "solved": f"{int(outcome.solved.sum())} of {len(outcome.numbers)}",
            f"tolerance [{task.unit}]": task.tolerance,
            "method": outcome.method.replace("_", "-"),
            "iterations, median": float(outcome.iterations.median()),
            "seconds, all": round(outcome.total_seconds, 2),
            **outcome.facts,
        }
    )
    _replay(page, outcome, show)
    with page.row():
        _progress(page, outcome, show)
        page.table(_rows(outcome), caption="All problems")
    _landscape(page, task)
    return page


def _replay(page: Report, outcome: Outcome, show: int) -> None:
    """Show some motions side by side, slowly enough to be watched."""
    from costate.draw.recording import record
    from costate.report.replay import SPEEDS

    task = outcome.task
    world = task.shown(outcome.numbers[0])
    links = [link for link in task.trails if link in world.link_names]
    together = min(show, outcome.states.shape[1]) if world is task.world else 1  # else each has surroundings of its own
    seconds = (len(outcome.states) - 1) * task.world.dt
    speed = max((s for s in SPEEDS if s <= min(1.0, seconds / WATCHED)), default=SPEEDS[0])
    page.recording(record(world, outcome.states, samples=together, trails=links), speed=speed, play=True)


def _progress(page: Report, outcome: Outcome, show: int) -> None:
    least_time = outcome.method == "direct"
    title = "Duration [s]; a motion only in the end" if least_time else "Loss"
    few = len(outcome.solution.history) < 40
    page.plot(_losses(outcome, show), title=title, x_label="iteration", log_y=not least_time, markers=few)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {
            "problem": number,
            f"error [{outcome.task.unit}]": float(outcome.error[k]),
            "solved": "yes" if bool(outcome.solved[k]) else "no",
            "iterations": float(outcome.iterations[k]),
        }
        | {name: float(values[k]) for name, values in outcome.columns.items()}
        for k, number in enumerate(outcome.numbers)
    ]


def _losses(outcome: Outcome, show: int) -> dict[str, Any]:
    losses = outcome.solution.losses()
    if losses.dim() == 1:
        return {"slowest problem": losses}
    return {"median": losses.median(-1).values} | {f"try {k}": losses[:, k] for k in range(min(show, losses.shape[1]))}


def _landscape(page: Report, task: Any) -> None:
    """Plot the loss over the unknown, for tasks with a single one."""
    if not hasattr(task, "landscape"):
        return
    import torch

    frictions = torch.linspace(0.02, 1.0, 99, dtype=torch.float64)
    loss, slope = task.landscape(frictions)
    with page.row():
        page.plot({"loss [m^2]": loss}, frictions, title="Loss over friction", x_label="friction", log_y=True)
        page.plot({"slope [m^2]": slope}, frictions, title="Its derivative", x_label="friction")
