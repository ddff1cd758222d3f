"""Benchmark of cloth: processor time of an implicit step, forward and backward, one thread.

python -m benchmarks.bench_cloth [--smoke] [--json FILE] [--markdown FILE] [--rounds 5] [--sizes 30 60]
    [--tolerances 1e-2 1e-4 1e-6] [--bending 1.5e-5]
"""

from __future__ import annotations

import argparse
import time

import torch

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from costate.continuum import ClothModel, ClothState, Solver, sheet

STEPS = 10
WARM = 40
"""Steps before the first that is measured: the sheet swings then."""
TOLERANCES = (1e-2, 1e-4, 1e-6)
NOTE = (
    f"A sheet of 1 m x 1 m (0.3 kg/m^2, 1000 N/m) that falls from two pinned corners, steps of 1/120 s, {STEPS} "
    f"of them after {WARM}. tolerance: forces that do not balance, by the weights (root of the sums of squares); the adjoint is "
    "solved to the same share of its right-hand side. Backward is the gradient of the positions at the end by those at the "
    "beginning and the velocities; it includes following the solution once more. One thread, least processor time, all that a "
    "user calls."
)


def sheets(n: int, tolerance: float, bending: float) -> tuple[ClothModel, ClothState]:
    """Return a sheet of n x n points that swings."""
    cloth = sheet((n, n), (1.0, 1.0), parameters={"bending": bending})
    model = ClothModel([cloth], dt=1 / 120, pins=[0, n - 1], solver=Solver(tolerance))
    return model, model.run(WARM).final


def measured(n: int, tolerance: float, bending: float, rounds: int) -> tuple[str | float, ...]:
    """Return a row of the table."""
    model, begin = sheets(n, tolerance, bending)
    x, v = begin.x.clone().requires_grad_(), begin.v.clone().requires_grad_()
    seconds = {"forward": float("inf"), "backward": float("inf")}
    told = torch.zeros(1, 4)
    for _ in range(rounds + 1):  # the first round compiles
        t = [time.process_time()]
        with torch.no_grad():
            told = model.run(STEPS, begin).told
        t.append(time.process_time())
        history = model.run(STEPS, ClothState(x, v, begin.a))
        t.append(time.process_time())
        history.final.x.square().sum().backward()
        t.append(time.process_time())
        seconds["forward"] = min(seconds["forward"], t[1] - t[0])
        seconds["backward"] = min(seconds["backward"], (t[3] - t[2]) + max(0.0, (t[2] - t[1]) - (t[1] - t[0])))
    each = [1e3 * s / STEPS for s in seconds.values()]
    return f"{n} x {n}", f"{tolerance:g}", float(told[:, 3].mean()), float(told[:, 2].mean()), *each


def table(chosen: Options) -> Table:
    """Return the times of a step."""
    sizes, tolerances, rounds = chosen.rest.sizes, chosen.rest.tolerances, chosen.rest.rounds
    if chosen.smoke:
        sizes, tolerances, rounds = (12,), TOLERANCES[:1], 1
    rows = [measured(n, t, chosen.rest.bending, rounds) for n in sizes for t in tolerances]
    head = ("points", "tolerance", "Newton steps", "CG iterations", "forward [ms per step]", "backward [ms per step]")
    return Table("A step of cloth", head, tuple(rows), NOTE)


def main() -> None:
    """Measure and publish."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the best counts")
        parser.add_argument("--sizes", type=int, nargs="+", default=(30, 60), help="points along a side")
        parser.add_argument("--tolerances", type=float, nargs="+", default=TOLERANCES)
        parser.add_argument("--bending", type=float, default=1.5e-5, help="bending stiffness [N m]")

    chosen = options(__doc__ or "", ["smoke"], add)
    with threads(1):
        found = table(chosen)
    publish(Report("Cloth", "python -m benchmarks.bench_cloth", machine(), (found,)), chosen)


if __name__ == "__main__":
    main()
