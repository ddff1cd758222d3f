"""Learning curves: tasks with rewards, each by some algorithms, from several seeds.

python -m benchmarks.study_learning [--tasks ant hopper cartpole] [--algorithms shac] [--seeds 5] [--at-once 2] [--folder FOLDER]
python -m benchmarks.study_learning --markdown docs/learning_curves.md --plots docs/plots      # what the docs show
python -m benchmarks.study_learning --tasks ant_v5 --algorithms sac sac+sample --seeds 2 --episodes 64 --over steps \
    --name enhancement --more "--iterations 100 --batch 16 --horizon 8 --updates 128 --actor 64 64 --critic 64 64" \
    --markdown docs/learning_curves.md --plots docs/plots      # SAC with and without sample enhancement, at equal steps
python -m benchmarks.study_learning --tasks hopper_v5 walker2d_v5 half_cheetah_v5 ant_v5 --episodes 64 \
    --markdown docs/gymnasium_v5.md --plots docs/plots

Every training is `costate train TASK --algorithm ALGORITHM --seed SEED` with the defaults of the task, on one thread; a run that
is in the folder goes on, or is not repeated. Time is that of the processor, since the machine may have other work; at the end the
policy acts without noise from new starts. Policies of gymnasium's tasks are judged in gymnasium's own environment, too, in 20
episodes (`costate transfer`).
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure.table import Table, machine
from costate.core.files import write_json
from costate.tasks.locomotion.v5.transfer import EPISODES, try_in_gymnasium
from costate.train.evaluate import evaluate
from costate.train.run import Run

GOALS: dict[str, tuple[tuple[float, float], ...]] = {
    "ant": ((60, 5000), (180, 6500), (600, 8000)),
    "hopper": ((300, 4700),),
    "humanoid": ((3600, 7300),),
}
"""Task -> seconds, and the return that is to be reached in them."""
MARK = "<!-- curves: {} -->"


def trained(folder: Path, task: str, algorithm: str, seed: int, more: str, episodes: int) -> Run:
    """Return a finished run; train it, or let it go on, if it is not."""
    path = folder / f"{task}-{algorithm}-{seed}"
    name, _, enhancement = algorithm.partition("+")
    if not (path.exists() and Run.open(path).finished):
        command = [sys.executable, "-m", "costate.cli", "train", task, "--no-tensorboard"]
        begin = ["--algorithm", name, "--seed", str(seed), "--out", str(path)]
        begin += ["--enhancement", enhancement] if enhancement else []
        begin += more.split()
        with open(folder / f"{path.name}.log", "a") as log:
            going = ["--resume", str(path)] if path.exists() else begin
            subprocess.run([*command, *going], check=True, stdout=log, stderr=log)
    run = Run.open(path)
    if run.evaluation is None:
        evaluate(run, episodes)
    if hasattr(run.task, "gym") and not (path / "transfer.json").exists():
        try_in_gymnasium(run, EPISODES, seed=0, files=False)
    last = run.metrics()[-1]
    print(f"{path.name}: {last['return']:.5g} after {last['processor_seconds']:.0f} s", flush=True)
    return run


AXES = {"time": ("processor_seconds", "processor time [s]"), "steps": ("control_steps", "control steps")}
"""Name of a horizontal axis -> column of the metrics, and what is written there."""


def curve(run: Run, over: str = "time") -> list[tuple[float, float]]:
    """Return processor seconds or control steps, and the mean return of the last 100 episodes, row by row."""
    return [(row[AXES[over][0]], row["return"]) for row in run.metrics()]


def at(run: Run, seconds: float) -> float | None:
    """Return the return that a training had reached after some processor seconds; None if it was over before."""
    points = curve(run)
    return next((value for time, value in reversed(points) if time <= seconds), None) if points else None


def table(task: str, algorithm: str, runs: list[Run]) -> Table:
    """Return what each seed has reached."""
    goals = GOALS.get(task, ())
    columns = ["seed", *(f"return after {s:.0f} s (goal {g:,.0f})" for s, g in goals)]
    columns += ["control steps", "processor s", "steps/s", "played without noise: return", "success"]
    moved = [json.loads(file.read_text()) for run in runs if (file := run.path / "transfer.json").exists()]
    columns += [f"{EPISODES} episodes in gymnasium: return", "least", "same starts in Costate"] if moved else []
    rows = []
    for k, run in enumerate(runs):
        last, found = run.metrics()[-1], run.evaluation or {}
        reached = [at(run, s) for s, _ in goals]
        spent = last["processor_seconds"]
        row = [run.options.seed, *(f"{r:,.0f}" if r is not None else "-" for r in reached)]
        row += [f"{last['control_steps']:,}", f"{spent:.0f}", f"{last['control_steps'] / spent:,.0f}"]
        row += [f"{found['return']:,.0f}", f"{100 * found['success']:.1f} %"]
        if moved:
            there, here = moved[k]["gymnasium"], moved[k]["costate"]
            row += [f"{r['mean']:,.0f} +- {r['std']:,.0f}" for r in (there, here)]
            row.insert(-1, f"{there['least']:,.0f}")
        rows.append(tuple(row))
    final = [float((run.evaluation or {})["return"]) for run in runs]
    spread = f", standard deviation {statistics.stdev(final):,.0f}" if len(final) > 1 else ""
    note = f"Mean of the seeds, played without noise: {statistics.mean(final):,.0f}{spread}."
    if moved:
        note += f" In gymnasium: {statistics.mean(m['gymnasium']['mean'] for m in moved):,.0f}."
    return Table(f"{task}, {algorithm}", tuple(columns), tuple(rows), note)


def draw(task: str, runs: dict[str, list[Run]], path: Path, over: str) -> None:
    """Draw the curves of a task: all seeds, and their mean where all have one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for k, (algorithm, each) in enumerate(runs.items()):
        for number, run in enumerate(each):
            time, value = zip(*curve(run, over), strict=True)
            count = f"{len(each)} seed{'s' if len(each) > 1 else ''}"
            label = f"{algorithm}, {count}" if number == 0 else None
            axes.plot(time, value, color=f"C{k}", linewidth=1, alpha=0.8, label=label)
    values = [value for each in runs.values() for run in each for _, value in curve(run)]
    low, high = np.percentile(values, 10), max(values + [goal for _, goal in GOALS.get(task, ())])
    room = high - low
    axes.set_ylim(max(min(values), low - 0.2 * room), high + 0.05 * room)  # one stumble does not set the scale
    for seconds, goal in GOALS.get(task, ()) if over == "time" else ():
        axes.plot(seconds, goal, "k+", markersize=9)
    axes.set(xlabel=AXES[over][1], ylabel="return of the last 100 episodes", title=task)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def publish(page: Path, task: str, text: str) -> None:
    """Put the text of a task into a page, between its marks; a page without them gets them at its end."""
    begin, end = MARK.format(task), MARK.format(f"end of {task}")
    old = page.read_text() if page.exists() else "# Learning curves\n"
    block = f"{begin}\n{text}\n{end}"
    found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    page.write_text(found.sub(lambda _: block, old) if found.search(old) else f"{old.rstrip()}\n\n{block}\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["cartpole", "hopper", "ant"])
    parser.add_argument("--algorithms", nargs="+", default=["shac"], help="also sac+policy, sac+sample")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=2, help="trainings side by side, one thread each")
    parser.add_argument("--more", default="", help='options of all trainings, such as "--iterations 20" to try it')
    parser.add_argument("--episodes", type=int, default=1000, help="episodes without noise at the end")
    parser.add_argument("--over", choices=list(AXES), default="time", help="horizontal axis of the pictures")
    parser.add_argument("--name", help="name of the part of the page and of the picture; default: that of the task")
    parser.add_argument("--folder", type=Path, default=Path("out/learning"), help="run folders")
    parser.add_argument("--markdown", type=Path, help="page whose tables are replaced")
    parser.add_argument("--plots", type=Path, help="folder of the pictures")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    asked.folder.mkdir(parents=True, exist_ok=True)
    cases: list[tuple[str, str, int]] = [
        (task, algorithm, seed) for task in asked.tasks for seed in range(asked.seeds) for algorithm in asked.algorithms
    ]
    with ThreadPoolExecutor(asked.at_once) as pool:
        runs = list(pool.map(lambda c: trained(asked.folder, *c, more=asked.more, episodes=asked.episodes), cases))
    found: dict[str, dict[str, list[Run]]] = {}
    for (task, algorithm, _), run in zip(cases, runs, strict=True):
        found.setdefault(task, {}).setdefault(algorithm, []).append(run)
    told: dict[str, Any] = {"machine": machine()}
    for task, ways in found.items():
        tables = [table(task, algorithm, each) for algorithm, each in ways.items()]
        told[task] = {t.title: {"columns": t.columns, "rows": t.rows} for t in tables}
        text = "\n\n".join(t.markdown() for t in tables)
        print(text)
        name = asked.name or task
        if asked.plots:
            draw(task, ways, asked.plots / f"learning_{name}.png", asked.over)
            text += f"\n\n![Learning curves of {task}](plots/learning_{name}.png)"
        if asked.markdown:
            publish(asked.markdown, name, text)
    if asked.json:
        write_json(asked.json, told)


if __name__ == "__main__":
    main()
