"""Benchmark of the published case: heat of 18,438 nodes and 16,673 steps, forward and backward.

python -m benchmarks.bench_printed_part [--smoke] [--json FILE] [--markdown FILE] [--threads 1 2] [--steps 16673]

One iteration of Mozaffar and Cao (arXiv 2107.10919) took 17 to 20 minutes and kept 3.7 GB. Here the part is one of ours with as
many nodes, elements and steps, and the same density, laser and surroundings, with latent heat. The gradient is that of the mean
squared temperature in all frames with respect to the power in every step. --treatment: 26,000 steps with the time in a window of
temperatures.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch

from benchmarks.measure.table import Table, machine
from costate.core.files import write_json
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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few steps only")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    parser.add_argument("--steps", type=int, help="default: 16,673, or 26,000 with --treatment")
    parser.add_argument("--treatment", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    steps = asked.steps or (64 if asked.smoke else 26_000 if asked.treatment else 16_673)
    if asked.here:
        print("\t".join(one(asked.dtypes[0], asked.threads[0], steps, asked.treatment)))
        return
    rows = []
    for dtype in asked.dtypes:
        for threads in asked.threads:
            command = [sys.executable, "-m", "benchmarks.bench_printed_part", "--here", "--steps", str(steps)]
            command += ["--dtypes", dtype, "--threads", str(threads), *(["--treatment"] if asked.treatment else [])]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
            rows.append(tuple(done.stdout.strip().splitlines()[-1].split("\t")))
            print(*rows[-1], flush=True)
    what = "time in a window" if asked.treatment else "temperature history"
    table = Table(f"Gradient of the {what}, published size", COLUMNS, tuple(rows), f"{machine()}")
    print(table.markdown())
    if asked.markdown:
        asked.markdown.write_text(table.markdown() + "\n")
    if asked.json:
        write_json(asked.json, {"machine": machine(), "columns": COLUMNS, "rows": rows})


if __name__ == "__main__":
    main()
