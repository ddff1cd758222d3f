"""Reinforcement learning on the insertion task, beside gradients through the simulation: control steps and time to success.

Contestants (benchmarks/race/methods.py) are back-propagation through whole episodes, short-horizon actor-critic (SHAC), PPO and SAC
(stable-baselines3). All train a network with one hidden layer of 256 units and no guide, without contact; the last three get the
terms of the loss as dense rewards, and PPO and SAC a curriculum and other coordinates, which back-propagation also tries. Success
is judged by the same criteria in the world with contact. Times are processor time on one thread, without looks at the success
rate. Trainings that have ended are kept in --folder and not repeated.

    python -m benchmarks.study_rl --minutes 10
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.measure import harness
from benchmarks.race.curve import CRITERIA, HELD_OUT, WATCHED, Curve
from benchmarks.race.methods import METHODS, Setting
from costate.tasks.insertion import InsertionOptions
from costate.tasks.insertion.training import ALONE

LEVELS = (0.5, 0.9, 0.99)
"""Success rates; reported is when a method reached them for good."""
FULL = InsertionOptions().unlimited()
NEAR = replace(FULL, target_range=0.0, start_range=0.01, start_height=0.10)
LOOSE = replace(NEAR, clearance=4e-3)
VARIANTS = {"near": (NEAR, 800, 1.0), "loose": (LOOSE, 800, 4.0), "full": (FULL, ALONE.iterations, 1.0)}
"""Name -> options of the task, iterations of back-propagation, and a factor of the errors, speeds and overlaps that are allowed.
Near: the socket stands in one place, and the bottle begins 40 mm above its mouth, with joints within 0.01 rad. Loose: the same with
four times the clearance and tolerance. Full: the default task. All without limits of acceleration and jerk."""
CRITERIA_TOLD = ("stayed in place", "stayed at rest", "no overlap")
Curves = Mapping[str, list[Curve]]


def tables(variant: str, curves: Curves) -> tuple[harness.Table, ...]:
    ends, firsts = [], []
    for name, runs in curves.items():
        last = [c.points[-1] for c in runs]
        found = {"steps": [p["steps"] / 1e6 for p in last], "minutes": [p["seconds"] / 60 for p in last]}
        judged = [c.final or c.points[-1] for c in runs]
        found |= {"success": [100 * m["success"] for m in judged], "error": [m["error"] for m in judged]}
        found |= {key: [100 * m[key] for m in judged] for key in CRITERIA[:3]}
        broken = sum(not c.final for c in runs)
        seeds = f"{len(runs)} ({broken} interrupted)" if broken else str(len(runs))
        ends.append((name, seeds, *(_spread(v) for v in found.values())))
        firsts.append((name, *(_cell(runs, level) for level in LEVELS)))
    columns = "method", "seeds", "control steps [M]", "minutes", "success [%]", "mean error [mm]", *CRITERIA_TOLD
    end = harness.Table(
        f"Variant `{variant}`: at the end",
        columns,
        tuple(ends),
        f"{HELD_OUT} held-out episodes with contact (of an interrupted training: the last look); lowest and highest of the seeds. "
        "The last three columns: the part of the episodes, in percent, that meets a criterion, whatever the others.",
    )
    first = harness.Table(
        f"Variant `{variant}`: control steps and processor time to a success rate",
        ("method", *(f"{100 * level:.0f} %" for level in LEVELS), *(f"{100 * level:.0f} %: times" for level in LEVELS)),
        tuple((*row, *(_ratio(curves[row[0]], curves, level) for level in LEVELS)) for row in firsts),
        f"The first look, at {WATCHED} episodes, from which on none was below; medians over the seeds. The last three columns: "
        f"as multiples of back-propagation. ![learning curves](plots/insertion_rl_{variant}.png)",
    )
    return end, first


def _spread(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


def _middle(runs: list[Curve], level: float, key: str) -> float:
    """Return the median of the steps or seconds after which trainings reach a level; one that never does counts as infinite."""
    points = [c.reached(level) for c in runs]
    return median([inf if p is None else p[key] for p in points] or [inf])


def _cell(runs: list[Curve], level: float) -> str:
    steps, seconds = (_middle(runs, level, key) for key in ("steps", "seconds"))
    return f"{steps / 1e6:.2f} M, {seconds:.0f} s" if steps < inf else "never"


def _ratio(runs: list[Curve], curves: Curves, level: float) -> str:
    """Return control steps and time to a success rate as multiples of those of back-propagation."""
    keys = ("steps", "seconds")
    mine, theirs = ([_middle(of, level, key) for key in keys] for of in (runs, curves.get("back-propagation", [])))
    if inf in (*mine, *theirs):
        return "-"
    return ", ".join(f"{a / b:.2g}" for a, b in zip(mine, theirs, strict=True))


def plot(curves: Curves, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), dpi=110)
    for number, (name, runs) in enumerate(curves.items()):
        for k, c in enumerate(runs):
            steps, label = [p["steps"] for p in c.points], name if k == 0 else None
            left.semilogx(steps, [100 * p["success"] for p in c.points], marker=".", label=label, color=f"C{number}")
            right.loglog(steps, [p["error"] for p in c.points], marker=".", label=label, color=f"C{number}")
    left.set(xlabel="control steps", ylabel="success [%]", ylim=(-3, 103))
    right.set(xlabel="control steps", ylabel="mean error [mm]")
    right.axhline(0.5, color="grey", linestyle=":", linewidth=1)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.legend(*left.get_legend_handles_labels(), loc="lower center", ncols=len(curves), fontsize="small")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def main() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--minutes", type=float, default=10.0, help="processor time for each training")
        parser.add_argument("--variant", choices=list(VARIANTS), default="near", help="the task")
        parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds of the trainings")
        parser.add_argument("--folder", type=Path, default=Path("out/study_rl"), help="where trainings are kept")
        parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the learning curves there")

    chosen = harness.options(__doc__ or "", list(METHODS), more)
    rest = chosen.rest
    folder = rest.folder / rest.variant
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    options, iterations, tolerance = VARIANTS[rest.variant]
    for seed in rest.seeds:
        for name in chosen.only:
            curve = Curve(folder / f"{name}_{seed}.json")
            if not Curve.open(curve.file).final:
                METHODS[name](Setting(options, iterations, 60 * rest.minutes, seed, tolerance, chosen.smoke), curve)
    found = {variant: curves for variant in VARIANTS if (curves := kept(rest.folder / variant))}
    facts = harness.machine(**{p: version(p) for p in ("stable_baselines3", "gymnasium")})
    told = tuple(table for variant, curves in found.items() for table in tables(variant, curves))
    report = harness.Report("Results of the race", "python -m benchmarks.study_rl", facts, told)
    harness.publish(report, chosen)
    if chosen.json:
        points = {v: {name: [c.points for c in runs] for name, runs in curves.items()} for v, curves in found.items()}
        chosen.json.write_text(json.dumps(asdict(report) | {"curves": points}, indent=1))
    for variant, curves in found.items() if rest.plots else ():
        plot(curves, rest.plots / f"insertion_rl_{variant}.png")


def kept(folder: Path) -> Curves:
    """Return the trainings in a folder, by method."""
    found = {name: [Curve.open(f) for f in sorted(folder.glob(f"{name}_*.json"))] for name in METHODS}
    return {name: runs for name, runs in found.items() if runs}


if __name__ == "__main__":
    main()
