"""Benchmark of the published case: heat of 18,438 nodes and 16,673 steps, forward and backward.

python -m benchmarks.bench_printed_part [--smoke] [--json FILE] [--markdown FILE] [--only history treatment] [--threads 1 2]

One iteration of Mozaffar and Cao (arXiv 2107.10919) took 17 to 20 minutes and kept 3.7 GB. Here the part is one of ours with as
many nodes, elements and steps, and the same density, laser and surroundings, with latent heat. The gradient is that of the mean
squared temperature in all frames with respect to the power in every step. "treatment" is 26,000 steps with the time in a window
of temperatures.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import torch

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish
from costate.tasks.additive.problem import case_of
from costate.tasks.additive.treatment import in_window

PUBLISHED = 17.0 * 60
"""Seconds of a published iteration, the shortest printed in the notebook."""
COLUMNS = (
    "number type",
    "threads",
    "steps",
    "cold start [s]",
    "forward [s]",
    "backward [s]",
    "times 17 min",
    "memory [MB]",
)


def one(dtype: str, threads: int, steps: int, treatment: bool) -> list[str]:
    """Compute one gradient in this process; return a row of the table."""
    torch.set_num_threads(threads)
    kind = torch.float32 if dtype == "float32" else torch.float64
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    observe = {"observe": (in_window, 1, 3)} if treatment else {}
    model = case_of("published").model(duration=0.02 * steps, **observe)
    power = torch.full((model.steps,), 200.0, dtype=kind, requires_grad=True)
    settings = torch.tensor([900.0, 1100.0, 20.0], dtype=kind) if treatment else torch.zeros(1, dtype=kind)
    short = case_of("published").model(duration=0.02 * model.segment, segment=model.segment, **observe)
    first = power[: short.steps].detach().requires_grad_()
    _loss(short.run(first, settings=settings), treatment).backward()
    cold = time.perf_counter() - begun
    model.kernel.code("f32" if dtype == "float32" else "f64")  # compiled already: from the disk
    begun = time.perf_counter()
    loss = _loss(model.run(power, settings=settings), treatment)
    middle = time.perf_counter()
    loss.backward()
    ended = time.perf_counter()
    assert power.grad is not None and torch.isfinite(power.grad).all()
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    ratio = PUBLISHED * steps / 16_673 / (ended - begun)
    row = [dtype, threads, model.steps, f"{cold:.1f}", f"{middle - begun:.1f}", f"{ended - middle:.1f}"]
    return [str(x) for x in (*row, f"{ratio:.0f}", f"{memory:.0f}")]


def _loss(history, treatment: bool) -> torch.Tensor:
    return history.integrals.mean() if treatment else (history.T**2).mean()


TITLES = {
    "history": "Gradient of a temperature history",
    "treatment": "Gradient of the time in a window of temperatures",
}
STEPS = {"history": 16_673, "treatment": 26_000}


def table(kind: str, chosen: Options) -> Table:
    """Measure each number type and number of threads in a process of its own, one after the other."""
    steps = 64 if chosen.smoke else STEPS[kind]
    rows = []
    for dtype in chosen.rest.dtypes:
        for threads in chosen.rest.threads:
            command = [sys.executable, "-m", "benchmarks.bench_printed_part", "--here", str(steps), "--only", kind]
            command += ["--dtypes", dtype, "--threads", str(threads)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(tuple(done.stdout.strip().splitlines()[-1].split("\t")))
            print(*rows[-1], flush=True)
    return Table(
        TITLES[kind], COLUMNS, tuple(rows), "18,438 nodes; wall time. Cold start: from nothing to a first gradient."
    )


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--here", type=int, help=argparse.SUPPRESS)


def main() -> None:
    chosen = options(__doc__ or "", list(TITLES), _add)
    rest = chosen.rest
    if rest.here:
        print("\t".join(one(rest.dtypes[0], rest.threads[0], rest.here, chosen.only[0] == "treatment")))
        return
    tables = tuple(table(kind, chosen) for kind in chosen.only)
    publish(Report("Speed of a printing process", "python -m benchmarks.bench_printed_part", machine(), tables), chosen)


if __name__ == "__main__":
    main()
