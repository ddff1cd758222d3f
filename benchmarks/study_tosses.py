"""Tosses of a real cube: numbers found from 100 of them, and errors in the other 470, beside MuJoCo.

python -m benchmarks.study_tosses FILE [--only hard networks newton mujoco] [--iterations 80] [--seed 0]

FILE is the recording of ContactNets in the form of docs/real_data.md. networks: the fits of Hard and Newton go on with networks on
contacts, and without any for as long. MuJoCo starts from the same states: with its defaults, the friction of the authors, and with
numbers fitted to the same stretches of the same tosses by its sysid tool.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from benchmarks.measure.table import Table, machine
from costate.identify.tosses import Thrown, TossOptions, TossResult, identify_tosses, read_tosses
from costate.identify.tosses.fit import STAGES, Trial
from costate.identify.tosses.pipeline import learn_networks
from costate.identify.tosses.result import errors_of
from costate.sim.scene import shapes

CUBE = Thrown(shapes.box((0.1048,) * 3), 0.37, 0.18, 0.125, 0.00081 * np.eye(3))
"""Numbers of the authors."""
SUBSTEPS = 4
"""Steps of MuJoCo and of Newton per row: 1.7 ms; MuJoCo's default is 2 ms."""
ROWS = 80
NETWORKS = ((), ("friction_coefficient", "restitution"), ("normal_force", "friction_force"))
"""Quantities of contacts that networks are added to, after the numbers are found."""


def mujoco_rows(options: TossOptions, file: str, iterations: int) -> list[tuple[str, ...]]:
    """Return the rows of MuJoCo."""
    from benchmarks.identify.mujoco_tosses import Scene

    tosses = read_tosses(file)
    order = np.random.default_rng(options.seed).permutation(len(tosses))
    train, test = np.sort(order[: options.train]), np.sort(order[options.train :])
    world = CUBE.world("hard", tosses.dt, 1, ("gravity",))
    free = {"gravity": torch.tensor([0.0, 0.0, -9.61], dtype=torch.float64)}  # of the flights in this recording

    trial = Trial(world, tosses, CUBE.length, ROWS, options.first_rows)
    rows = tosses.windows(test, 0, ROWS)
    starts = {"first row": (rows[0], 0), f"{options.first_rows} rows": (trial.start(rows, free), options.first_rows)}
    table = []
    for name, friction, fitted in (
        ("defaults", None, False),
        ("authors' friction", 0.18, False),
        ("fitted", 0.18, True),
    ):
        clock, scene = time.process_time(), Scene(CUBE, 0.00081, tosses.dt, SUBSTEPS, friction)
        if fitted:
            parts = trial.stretches(train, STAGES[0], free)
            some = np.random.default_rng(options.seed).permutation(len(parts.start))[: STAGES[0].batch]
            found = scene.fit(parts.start[some], parts.rows[:, some], iterations)
            print("MuJoCo, raw numbers of", ", ".join(scene.counts), found.round(3).tolist(), flush=True)
        seconds = time.process_time() - clock
        for start, (states, seen) in starts.items():
            errors = errors_of(scene.states(states, ROWS - 1), rows, CUBE.length, seen)
            table.append((f"MuJoCo, {name}, from {start}", *numbers(errors.row()), f"{seconds:.0f}"))
    return table


def numbers(row: dict[str, float]) -> tuple[str, ...]:
    return tuple(f"{x:.1f}" for x in row.values())


def costate_rows(result: TossResult) -> list[tuple[str, ...]]:
    """Return the rows of a contact model."""
    return [
        (f"{result.contact}, {name}", *numbers(errors.row()), f"{result.seconds:.0f}" if "found" in name else "")
        for name, errors in result.errors.items()
    ]


def network_rows(result: TossResult, options: TossOptions) -> list[tuple[str, ...]]:
    """Return rows of fits that go on with networks on contacts, and of one that goes on without."""
    rows = []
    for quantities in NETWORKS:
        quantities = tuple(q for q in quantities if q != "restitution" or result.contact == "hard")
        more = learn_networks(result, replace(options, networks=quantities))
        print(quantities, "loss", more.losses[-1], flush=True)
        new = {name: errors for name, errors in more.errors.items() if name not in result.errors}
        rows += [
            (f"{result.contact}, {name} {' and '.join(quantities)}", *numbers(errors.row()), f"{more.seconds:.0f}")
            for name, errors in new.items()
        ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--only", nargs="+", default=["hard", "networks", "newton", "mujoco"])
    parser.add_argument("--iterations", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    options = TossOptions(iterations=args.iterations, seed=args.seed)
    rows: list[tuple[str, ...]] = []
    for part in args.only:
        if part == "networks":
            continue
        if part == "mujoco":
            rows += mujoco_rows(options, args.file, args.iterations // 4)
            continue
        chosen = replace(options, contact=part, substeps=SUBSTEPS if part == "newton" else 1)
        result = identify_tosses(CUBE, args.file, chosen)
        print(result.summary(), flush=True)
        rows += costate_rows(result)
        if "networks" in args.only:
            rows += network_rows(result, chosen)
    columns = ("prediction", "position [%]", "rotation [deg]", "end [%]", "end [deg]", "median [deg]", "processor s")
    print(machine())
    print(Table("Tosses held out: mean errors over 0.54 s", columns, tuple(rows)).markdown())


if __name__ == "__main__":
    main()
