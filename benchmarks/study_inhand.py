"""In-hand manipulation: success, error and time of the planner, judged in MuJoCo, for seeds, sizes, masses and hands.

python -m benchmarks.study_inhand [--trials 20] [--seeds 0 1 2] [--only cube size mass friction sensing shadow level]
                                [--near 60] [--picture FILE [--hand shadow]]

Weights and options were chosen on trials of the seeds 100 to 103, which are not among those here. Sizes are known to the planner;
other masses and frictions are not: it plans with 100 g and 0.5.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.measure.table import Table, machine
from costate.tasks.inhand.hand import HANDS
from costate.tasks.inhand.planner import Planner, PlannerOptions, planner_for
from costate.tasks.inhand.predict import Prediction
from costate.tasks.inhand.sensing import Sensing
from costate.tasks.inhand.solve import Summary, replay
from costate.tasks.inhand.trial import Protocol, run_trial

USUAL = Protocol()
NOISY = Sensing(position=0.002, turn=2.0, joints=0.01)
CASES: dict[str, dict[str, Protocol]] = {
    "cube": {"cube of 50 mm, 100 g, friction 0.5": USUAL},
    "size": {f"{1e3 * size:.0f} mm": replace(USUAL, size=size) for size in (0.04, 0.06)},
    "mass": {f"{1e3 * mass:.0f} g": replace(USUAL, mass=mass) for mass in (0.05, 0.2)},
    "friction": {f"friction {mu}": replace(USUAL, friction=mu) for mu in (0.3, 0.8)},
    "sensing": {
        "one step late": replace(USUAL, sensing=Sensing(delay=1)),
        "noise": replace(USUAL, sensing=NOISY),
        "noise, one step late": replace(USUAL, sensing=replace(NOISY, delay=1)),
    },
    "shadow": {"Shadow hand": USUAL},
    "level": {"Shadow hand, level palm": USUAL},
}
"""Name of a part of the study -> its rows."""


def planner_of(part: str, near: float) -> Planner:
    """Return the planner of a part of the study. near: as in `PlannerOptions`."""
    planner = planner_for("shadow" if part in ("shadow", "level") else "allegro", near=near)
    if part == "level":
        return Planner(Prediction(replace(planner.prediction.hand, slope=0.0)), planner.options)
    return planner


def study(planner: Planner, protocol: Protocol, trials: int, seed: int) -> Summary:
    """Run trials of one seed; the planner knows the size only."""
    known = replace(USUAL, size=protocol.size).thing
    planner.plan(np.concatenate([[0, 0, 1, 0, 0, 0, 1], planner.prediction.hand.home]), np.eye(7)[6], known)  # compiles
    return Summary.of([run_trial(planner, protocol, k, seed, known=known) for k in range(trials)])


def run(parts: Sequence[str], trials: int, seeds: Sequence[int], near: float) -> Table:
    """Return all rows as a table, which is also printed row by row."""
    columns = ("", "seed", "succeeded", "error [deg]", "distance [mm]", "median time [s]", "plan [ms]")
    rows: list[tuple[str | float, ...]] = []
    for part in parts:
        planner = planner_of(part, near)
        for name, protocol in CASES[part].items():
            for seed in seeds:
                s = study(planner, protocol, trials, seed)
                numbers = (s.error, 1e3 * s.distance, 0.1 * s.steps, 1e3 * s.plan)
                rows.append((name, seed, f"{s.succeeded} of {s.trials}", *(f"{x:.1f}" for x in numbers)))
                print(*rows[-1], sep="  ", flush=True)
    return Table("In-hand manipulation", columns, tuple(rows))


def picture(path: Path, hand: str) -> None:
    """Draw the middle of the first trial of seed 0."""
    from costate.draw.camera import Camera
    from costate.draw.render import render_recording

    planner = planner_for(hand)
    trial = run_trial(planner, USUAL, 0)
    film = replay(planner.prediction.hand, USUAL, trial)
    camera = Camera(np.array([0.25, -0.3, 0.3]), np.array([-0.01, 0.0, 0.07]))
    render_recording(film, path, frame=len(trial.film) // 3, size=(900, 600), camera=camera)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--near", type=float, default=PlannerOptions().near, help="as in PlannerOptions [degrees]")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--hand", choices=list(HANDS), default="allegro", help="hand in the picture")
    options = parser.parse_args()
    if options.picture:
        picture(options.picture, options.hand)
    print(*(f"{name}: {fact}" for name, fact in machine().items()), sep="\n")
    print(run(options.only, options.trials, options.seeds, options.near).markdown())


if __name__ == "__main__":
    main()
