"""Benchmark of smoke on grids: processor time per cell and step, forward and backward, one thread.

python -m benchmarks.bench_fluid [--smoke] [--json FILE] [--markdown FILE] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from costate.continuum import FluidHistory, FluidModel, Grid, border

STEPS = 10
GRIDS = ((64, 64), (128, 128), (256, 256), (32, 32, 32), (64, 64, 64))
NOTE = (
    f"A plume rises in a closed box, {STEPS} steps, MacCormack, pressure to 1e-6. Backward is the gradient of the smoke at the end "
    "by the velocity at the beginning. One thread, least processor time; both are what a user calls: torch, checks, history."
)


def plume(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[Callable[[], FluidHistory], FluidModel]:
    """Return a function that computes all steps, and the model."""
    grid = Grid(shape, 1 / shape[0], border(shape))
    model = FluidModel(grid, 0.5 / shape[0], STEPS, advection="maccormack", tolerance=1e-6)
    x = torch.as_tensor(grid.centres, dtype=dtype)
    puff = torch.exp(-((x - 0.4) ** 2).sum(-1) / 0.01)
    velocity = torch.zeros(grid.d, *shape, dtype=dtype, requires_grad=True)
    lift = [0.0] * (grid.d - 1) + [2.0]
    return lambda: model.run(velocity, puff, buoyancy=lift), model


def measured(shape: tuple[int, ...], dtype: torch.dtype, rounds: int) -> tuple[str | float, ...]:
    """Return a row of the table."""
    run, model = plume(shape, dtype)
    seconds = {"forward": float("inf"), "backward": float("inf")}
    iterations = 0.0
    for _ in range(rounds + 1):  # the first round compiles
        begun = time.process_time()
        history = run()
        middle = time.process_time()
        history.smoke[-1].square().sum().backward()
        seconds["backward"] = min(seconds["backward"], time.process_time() - middle)
        seconds["forward"] = min(seconds["forward"], middle - begun)
        iterations = float(history.iterations.mean())
    each = {k: s / STEPS / model.grid.count * 1e9 for k, s in seconds.items()}
    name = " x ".join(map(str, shape))
    return name, str(dtype)[6:], iterations, each["forward"], each["backward"]


def table(chosen: Options) -> Table:
    """Return the times of a step."""
    grids = ((16, 16), (8, 8, 8)) if chosen.smoke else GRIDS
    rounds = 1 if chosen.smoke else chosen.rest.rounds
    rows = [measured(g, t, rounds) for g in grids for t in (torch.float64, torch.float32)]
    head = ("grid", "type", "iterations", "forward [ns per cell and step]", "backward [ns per cell and step]")
    return Table("A step of smoke", head, tuple(rows), NOTE)


def main() -> None:
    """Measure and publish."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the best counts")

    chosen = options(__doc__ or "", ["smoke"], add)
    with threads(1):
        found = table(chosen)
    publish(Report("Smoke on grids", "python -m benchmarks.bench_fluid", machine(), (found,)), chosen)


if __name__ == "__main__":
    main()
