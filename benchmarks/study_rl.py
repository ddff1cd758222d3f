"""Reinforcement learning on the insertion task, beside gradients through the simulation: control steps and time to success.

Contestants (benchmarks/race/methods.py) are back-propagation through whole episodes, short-horizon actor-critic (SHAC), PPO and SAC
(stable-baselines3). All train a network with one hidden layer of 256 units and no guide, without contact; the last three get the
terms of the loss as dense rewards, and PPO and SAC a curriculum and actions that are velocities of the bottle. Success is judged by
the same criteria in the world with contact. Times are processor time on one thread, without looks at the success rate. Trainings
that have ended are kept in --folder and not repeated.

    python -m benchmarks.study_rl --minutes 10
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.measure import harness
from benchmarks.race.curve import HELD_OUT, WATCHED, Curve
from benchmarks.race.methods import METHODS, Setting
from costate.tasks.insertion import InsertionOptions
from costate.tasks.insertion.training import ALONE

LEVELS = (0.5, 0.9, 0.99)
"""Success rates; reported is when a method reached them for good."""
FULL = InsertionOptions().unlimited()
NEAR = replace(FULL, target_range=0.0, start_range=0.01, start_height=0.10)
VARIANTS = {"near": (NEAR, 800), "full": (FULL, ALONE.iterations)}
"""Name -> options of the task, and iterations of back-propagation. Near: the socket stands in one place, and the bottle begins
40 mm above its mouth, with joints within 0.01 rad. Full: the default task. Both without limits of acceleration and jerk."""
Curves = Mapping[str, list[Curve]]


def tables(curves: Curves, minutes: float) -> tuple[harness.Table, ...]:
    ends, firsts = [], []
    for name, runs in curves.items():
        last = [c.points[-1] for c in runs]
        found = {"steps": [p["steps"] / 1e6 for p in last], "minutes": [p["seconds"] / 60 for p in last]}
        found |= {"success": [100 * c.final["success"] for c in runs], "error": [c.final["error"] for c in runs]}
        narrowest = min((p.get("clearance", 0.0) for p in last), default=0.0)
        socket = f"{narrowest:g} mm" if narrowest else "1 mm"
        ends.append((name, len(runs), *(_spread(v) for v in found.values()), socket))
        firsts.append((name, *(_cell([c.reached(level) for c in runs]) for level in LEVELS), *_ratios(runs, curves)))
    end = harness.Table(
        "At the end of the budget",
        (
            "method",
            "seeds",
            "control steps [M]",
            "minutes",
            "success [%]",
            "mean error [mm]",
            "narrowest socket trained in",
        ),
        tuple(ends),
        f"{HELD_OUT} held-out episodes, with 1 mm of clearance and contact; at most {minutes:g} processor minutes for each. "
        "Lowest and highest of the seeds.",
    )
    levels = tuple(f"{100 * level:.0f} %" for level in LEVELS)
    first = harness.Table(
        "Control steps and time to a success rate",
        ("method", *levels, "steps to 90 %, times those of back-propagation", "time, likewise"),
        tuple(firsts),
        f"The first look, at {WATCHED} episodes, from which on none was below; medians over the seeds. "
        "![learning curves](plots/insertion_rl.png)",
    )
    return end, first


def _spread(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


def _cell(points: list[dict[str, float] | None]) -> str:
    known = [p for p in points if p is not None]
    if len(known) <= len(points) / 2:
        return f"never ({len(known)} of {len(points)})" if known else "never"
    return f"{median(p['steps'] for p in known) / 1e6:.2f} M, {median(p['seconds'] for p in known):.0f} s"


def _ratios(runs: list[Curve], curves: Curves, level: float = 0.9) -> tuple[str, str]:
    """Return control steps and time to a success rate as multiples of those of back-propagation: medians."""
    mine, theirs = ([c.reached(level) for c in of] for of in (runs, curves.get("back-propagation", [])))
    if not mine or not theirs or any(p is None for p in (*mine, *theirs)):
        return "-", "-"

    def of(points: list[dict[str, float] | None], key: str) -> float:
        return median(p[key] for p in points if p is not None)

    return tuple(f"{of(mine, key) / of(theirs, key):.3g}" for key in ("steps", "seconds"))  # type: ignore[return-value]


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
        axes.legend()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def main() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--minutes", type=float, default=10.0, help="processor time for each training")
        parser.add_argument("--variant", choices=list(VARIANTS), default="near", help="the task")
        parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds of the trainings")
        parser.add_argument("--folder", type=Path, default=Path("out/study_rl"), help="where trainings are kept")
        parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the learning curves")

    chosen = harness.options(__doc__ or "", list(METHODS), more)
    rest = chosen.rest
    folder = rest.folder / rest.variant
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    options, iterations = VARIANTS[rest.variant]
    for seed in rest.seeds:
        for name in chosen.only:
            curve = Curve(folder / f"{name}_{seed}.json")
            if not Curve.open(curve.file).final:
                METHODS[name](Setting(options, iterations, 60 * rest.minutes, seed, chosen.smoke), curve)
    found = {name: [Curve.open(f) for f in sorted(folder.glob(f"{name}_*.json"))] for name in METHODS}
    found = {name: [c for c in runs if c.final] for name, runs in found.items()}
    found = {name: runs for name, runs in found.items() if runs}
    facts = harness.machine(**{p: version(p) for p in ("stable_baselines3", "gymnasium")})
    report = harness.Report(
        "Results of the race", f"make study-rl MINUTES={rest.minutes:g}", facts, tables(found, rest.minutes)
    )
    harness.publish(report, chosen)
    if chosen.json:
        points = {name: [c.points for c in runs] for name, runs in found.items()}
        chosen.json.write_text(json.dumps(asdict(report) | {"curves": points}, indent=1))
    if rest.plot:
        plot(found, rest.plot)


if __name__ == "__main__":
    main()
