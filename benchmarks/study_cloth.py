"""Study: tasks of cloth solved by Gauss-Newton, L-BFGS-B and CMA-ES, with counted evaluations; a towel folded wherever it lies.

    python -m benchmarks.study_cloth [--smoke] [--only TABLE ...] [--tasks NAME ...] [--methods NAME ...] [--problems 3]
                                     [--first 100] [--evaluations 1500] [--placements 200] [--minutes 60] [--json FILE]
                                     [--markdown FILE]

Every method begins with the same guess and ends when the motion is judged to be as wanted. An evaluation is a roll-out. Beside it
Gauss-Newton asks for tangents, one per unknown for each of its Jacobians, and L-BFGS-B for one gradient per evaluation.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from statistics import median

import numpy as np

from benchmarks.measure.harness import Report, Table, machine, options, publish, threads
from costate.tasks.cloth.methods import METHODS
from costate.tasks.cloth.names import CLOTH_TASKS
from costate.tasks.cloth.problem import ClothFound, ClothTask

TABLES = ("tasks", "placements")
OWN_JUDGE = "cloth_towel"
"""Task without a motion that is wanted: its table is in docs/cloth.md."""


class _Enough(Exception):  # noqa: N818  (it is no error)
    """Raised when a method has had its evaluations."""


def solved(task: ClothTask, problem: int, evaluations: int) -> ClothFound | None:
    """Solve a problem; None if that takes more evaluations than allowed."""

    def tell(text: str) -> None:
        if text.startswith(f"evaluation {evaluations}"):
            raise _Enough

    try:
        return task.solve(problem, tell)
    except _Enough:
        return None


def tasks(names: list[str], methods: list[str], problems: range, evaluations: int) -> Table:
    """Return how many evaluations every method takes."""
    rows = []
    for name in names:
        for method in methods:
            begun = time.process_time()
            task = replace(CLOTH_TASKS[name], method=method, iterations=1000)
            every = [solved(task, k, evaluations) for k in problems]
            good = [f.facts for f in every if f is not None and f.solved]
            counts = [[float(f[key]) for f in good] for key in ("roll-outs", "tangents", "gradients")]
            told = [f"{median(c):g}" if c else "-" for c in counts]
            each = ", ".join("-" if f is None or not f.solved else str(f.facts["roll-outs"]) for f in every)
            seconds = (time.process_time() - begun) / len(problems)
            rows.append((name, method.replace("_", "-"), f"{len(good)} of {len(problems)}", *told, each, seconds))
            print(rows[-1], flush=True)
    head = (
        "task", "method", "solved", "roll-outs, median", "tangents", "gradients", "roll-outs, each", "processor time [s]",
    )  # fmt: skip
    note = (
        f"Problems {problems.start} to {problems.stop - 1}, at most {evaluations} roll-outs each; compilation included."
    )
    return Table("Tasks of cloth, with gradients and without", head, tuple(rows), note)


def placements(first: int, count: int, minutes: float) -> Table:
    """Return how well a towel is folded in random placements."""
    task, begun, errors, rollouts, good = CLOTH_TASKS["cloth_fold"], time.process_time(), [], [], 0
    for k in range(first, first + count):
        found = task.solve(k, lambda text: None)
        good += found.solved
        errors.append(float(found.facts["corner error, layers touch [mm]"]))
        rollouts.append(int(found.facts["roll-outs"]))
        print(f"{k}: {good} of {len(errors)}, {errors[-1]:.2f} mm, {rollouts[-1]} roll-outs", flush=True)
        if time.process_time() - begun > 60 * minutes:
            break
    n, seconds = len(errors), time.process_time() - begun
    shares = [float(np.nanquantile(errors, q)) for q in (0.5, 0.95)]
    row = (f"{good} of {n}", f"{100 * good / n:.1f} %", *shares, float(np.nanmax(errors)), float(np.mean(rollouts)))
    head = ("below 10 mm", "share", "median [mm]", "95 % [mm]", "largest [mm]", "roll-outs, mean", "processor time [s]")
    note = f"Placements {first} to {first + n - 1}; layers touch each other in what is judged."
    return Table("A towel folded wherever it lies", head, ((*row, seconds / n),), note)


def main() -> None:
    """Measure and publish."""
    names = [n for n in CLOTH_TASKS if n != OWN_JUDGE]

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--tasks", nargs="+", choices=names, default=names, help="only these tasks")
        parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="only these methods")
        parser.add_argument("--problems", type=int, default=3, help="problems of every task")
        parser.add_argument("--first", type=int, default=100, help="number of the first problem")
        parser.add_argument("--evaluations", type=int, default=1500, help="largest number of roll-outs of a problem")
        parser.add_argument("--placements", type=int, default=200, help="placements of the towel")
        parser.add_argument(
            "--minutes", type=float, default=60.0, help="processor time after which no further one begins"
        )

    chosen = options(__doc__ or "", TABLES, add)
    rest, found = chosen.rest, []
    with threads(1):
        if "tasks" in chosen.only:
            some = names[1:2] if chosen.smoke else rest.tasks
            count, most = (1, 40) if chosen.smoke else (rest.problems, rest.evaluations)
            found.append(tasks(some, rest.methods, range(rest.first, rest.first + count), most))
        if "placements" in chosen.only:
            found.append(placements(rest.first, 1 if chosen.smoke else rest.placements, rest.minutes))
    publish(Report("Tasks of cloth", "python -m benchmarks.study_cloth", machine(), tuple(found)), chosen)


if __name__ == "__main__":
    main()
