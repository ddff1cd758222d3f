"""Benchmark of a robot among soft matter: a UR5 kneads dough, processor time of a roll-out and of its gradient, one thread.

python -m benchmarks.bench_knead [--smoke] [--json FILE] [--markdown FILE] [--rounds 2]
"""

from __future__ import annotations

import argparse
import resource
import time

import torch

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from costate.tasks.soft.robots.knead import KneadTask

NOTE = (
    "A UR5 with servos presses a pin into dough, float64. Gradient: of the loss of `costate solve soft_knead` by the targets of "
    "the joints in all steps, forward and back. One thread, least processor time; both are what a user calls: torch, checks, "
    "frames. Memory: the greatest of the process."
)


def measured(task: KneadTask, rounds: int) -> tuple[str | float, ...]:
    """Return a row of the table."""
    setting = task.setting(0)
    model = setting.soft.model
    change = torch.zeros_like(setting.knots, requires_grad=True)
    seconds, first = [float("inf"), float("inf")], 0.0
    for k in range(rounds + 1):  # the first round compiles
        begun = time.process_time()
        loss = task.loss(setting, task.play(setting, change))
        middle = time.process_time()
        loss.backward()
        end = time.process_time()
        if k == 0:
            first = end - begun
        seconds = [min(seconds[0], middle - begun), min(seconds[1], end - begun)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return f"{model.particles:,}", task.steps, task.steps * model.substeps, *seconds, first, memory


def table(chosen: Options) -> Table:
    """Return the times of roll-outs."""
    small = KneadTask(steps=10, spacing=0.02, size=(0.16, 0.16, 0.08))
    large = KneadTask(steps=200, spacing=0.0053)
    rows = [measured(small, 1)] if chosen.smoke else [measured(large, chosen.rest.rounds)]
    head = ("particles", "control steps", "substeps", "forward [s]", "gradient [s]", "first call [s]", "memory [MB]")
    return Table("Robot and dough", head, tuple(rows), NOTE)


def main() -> None:
    """Measure and publish."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=2, help="rounds, of which the best counts")

    chosen = options(__doc__ or "", ["knead"], add)
    with threads(1):
        found = table(chosen)
    publish(Report("A robot kneads dough", "python -m benchmarks.bench_knead", machine(), (found,)), chosen)


if __name__ == "__main__":
    main()
