"""Study: every task solved from random starts, with gradients and without.

    make study-optimise
    python -m benchmarks.study_optimise [--smoke] [--starts 20] [--only TABLE ...] [--tasks NAME ...] [--plots FOLDER]
                                        [--json FILE] [--markdown FILE]

One thread. Starts are solved one by one, which gives the seconds of one, and all together, side by side. Kernels are compiled
before the clock starts. The reference without gradients is CMA-ES (random search for the one unknown of the racecar), with a
whole population per call of the simulator, from the first starts only: it takes long. An iteration of it is a population.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

import torch

from benchmarks.measure.harness import Report, Table, machine, options, publish, threads
from benchmarks.optimise.plots import landscape, losses, useless
from costate.tasks.identify_contact import IdentifyContact
from costate.tasks.reach import HAND, Reach
from costate.train.solve import RECIPES, Outcome, recipe, solve
from costate.train.solve.problems import Solvable

TABLES = ("tasks", "many", "intervals", "gradients")
WARM = 777
"""Number of a problem that is only solved to compile what the others need."""
ROWS: tuple[tuple[str, str], ...] = tuple(
    (name, method) for name, row in RECIPES.items() for method in row.options if method != "search"
)


def tasks(chosen: list[str], starts: int, reference: int) -> tuple[Table, dict[str, Outcome]]:
    rows: list[tuple[str | float, ...]] = []
    kept: dict[str, Outcome] = {}
    for name, method in ROWS:
        if name not in chosen:
            continue
        task = recipe(name).make()
        solve(name, [WARM], method, task=task)
        alone = [solve(name, [k], method, task=task) for k in range(starts)]
        together = solve(name, range(starts), method, task=task)
        kept[f"{name} {method}"] = alone[0]
        row = [name, method.replace("_", "-"), _unknowns(task, together), *_judged(alone)]
        row.append(together.solution.seconds)
        rows.append((*row, *_without(name, task, reference, kept)))
        print(rows[-1], flush=True)
    columns = (
        "task", "method", "unknowns", "solved", "iterations", "seconds", f"all {starts}, side by side [s]",
        "search: solved", "iterations ", "seconds ",
    )  # fmt: skip
    note = (
        f"Solved: starts of {starts} random ones that reached the tolerance of the task, judged on a separate roll-out. Iterations "
        f"and seconds: medians over the solved starts, each run by itself. Search: CMA-ES (racecar: random search) from the first "
        f"{reference} "
        "starts, at most 500 iterations (golf 1,500, identification 300, racecar 100); for pendulums over 20 knots per joint, "
        "without a drawing, and for `push` from the first contact alone."
    )
    return Table("Tasks, with gradients and without", columns, tuple(rows), note), kept


def _judged(runs: list[Outcome]) -> tuple[str, float, float]:
    good = [o for o in runs if bool(o.solved.all())]
    if not good:
        return f"0 of {len(runs)}", float("nan"), float("nan")
    return (
        f"{len(good)} of {len(runs)}",
        median(float(o.iterations.max()) for o in good),
        median(float(o.seconds.max()) for o in good),
    )


def _without(name: str, task: Solvable, starts: int, kept: dict[str, Outcome]) -> tuple[str | float, ...]:
    if "search" not in recipe(name).options or starts == 0:
        return "", "", ""
    runs = [solve(name, [k], "search", task=task) for k in range(starts)]
    kept[f"{name} search"] = runs[0]
    solved, iterations, seconds = _judged(runs)
    if seconds != seconds:  # none: how long it tried
        iterations, seconds = (median(float(v(o)) for o in runs) for v in (_iterations, _seconds))
        return solved, f"> {iterations:.0f}", f"> {seconds:.3g}"
    return solved, iterations, seconds


def _iterations(o: Outcome) -> float:
    return float(o.iterations.max())


def _seconds(o: Outcome) -> float:
    return float(o.seconds.max())


def _unknowns(task: Solvable, outcome: Outcome) -> int:
    return outcome.x[:, 0].numel() if outcome.method == "ilqr" else outcome.x.shape[-1]


def many(count: int) -> Table:
    """Inverse kinematics, and paths among obstacles, hundreds at once."""
    task = Reach()
    scenes = task.scenes(range(count))
    solve("reach", [WARM], task=task)
    rows = []
    robot = task.robot
    robot.inverse_kinematics(scenes.goal, HAND, scenes.start)
    seconds = _timed(lambda: robot.inverse_kinematics(scenes.goal, HAND, scenes.start))
    q = robot.inverse_kinematics(scenes.goal, HAND, scenes.start)
    missed = (robot.forward_kinematics(q, HAND).position - scenes.goal.position).norm(dim=-1)
    rows.append(
        (f"inverse kinematics, {count}", float((missed < 1e-6).double().mean()), seconds, 1e3 * seconds / count)
    )
    straight = task.problems(range(count))
    share = float((straight.error(straight.x0) <= task.tolerance).double().mean())
    rows.append(("straight lines to a free configuration", share, "", ""))
    found = solve("reach", range(count), task=task)
    seconds = float(found.seconds.max())
    rows.append(
        (f"paths among obstacles, {count}", float(found.solved.double().mean()), seconds, 1e3 * seconds / count)
    )
    columns = "problems of a Panda", "share solved", "seconds", "per problem [ms]"
    return Table("Many at once", columns, tuple(rows), "Inverse kinematics to 1 um; paths as in the task `reach`.")


def _timed(run) -> float:
    from benchmarks.measure.harness import once

    return min(once(run) for _ in range(3))


def intervals(starts: int) -> Table:
    rows = []
    for name in (n for n in RECIPES if n.startswith("identify")):
        task = recipe(name).make()
        assert isinstance(task, IdentifyContact)
        found = solve(name, range(starts), task=task)
        width = task.confidence(task.problems(range(starts)).residuals, found.x)
        away = (task.decode(found.x) - task.truth).abs()
        for k, u in enumerate(task.setup.unknowns):
            held = f"{int((away[:, k] <= width[:, k]).sum())} of {starts}"
            rows.append((name, u.label, u.truth, float(away[:, k].mean()), float(width[:, k].mean()), held))
    columns = "task", "parameter", "truth", "mean error", "95 % interval: half width", "truth inside"
    return Table("Confidence intervals", columns, tuple(rows), "Each start has its own noise.")


def gradients(folder: Path | None) -> Table:
    rows = useless(folder)
    return Table(
        "Where a gradient is useless",
        ("scene", "contact", "gradient", "true slope"),
        rows,
        "Gradients of the programs, and slopes over 0.1 N and over the whole range.",
    )


def main() -> None:
    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--starts", type=int, default=20)
        parser.add_argument("--reference", type=int, default=5, help="starts of the search")
        parser.add_argument("--tasks", nargs="+", choices=list(RECIPES), default=list(RECIPES))
        parser.add_argument("--plots", type=Path, metavar="FOLDER")

    chosen = options(__doc__ or "", TABLES, add)
    given = chosen.rest
    starts, reference, count = (2, 0, 16) if chosen.smoke else (given.starts, given.reference, 512)
    tables: list[Table] = []
    with threads(1):
        if "tasks" in chosen.only:
            table, kept = tasks(given.tasks, starts, reference)
            tables.append(table)
            if given.plots:
                losses(kept, given.plots)
                landscape(given.plots)
        if "many" in chosen.only:
            tables.append(many(count))
        if "intervals" in chosen.only:
            tables.append(intervals(starts))
        if "gradients" in chosen.only:
            tables.append(gradients(given.plots))
    publish(Report("Tasks: measured", "make study-optimise", machine(), tuple(tables)), chosen)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    main()
