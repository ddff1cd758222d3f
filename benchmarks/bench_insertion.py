"""Benchmark of the insertion task: the time of one action from Python, and what an iteration of training costs.

python -m benchmarks.bench_insertion [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...]
python -m benchmarks.bench_insertion --markdown docs/benchmarks.md         # what the docs show
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import costate as cs
from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish, threads
from costate.tasks.insertion import Insertion
from costate.train.controller import save_policy
from costate.train.evaluate import evaluate_policy
from costate.train.run import Run
from costate.train.trainer import Trainer

GOAL = 50.0
"""Microseconds that one action may take."""


def action(chosen: Options, run: Run) -> Iterator[Table]:
    """One observation in, six commands out."""
    save_policy(run)  # how long it takes does not depend on what was learnt
    controller, policy = cs.load_policy(run.path), run.policy
    state = run.task.sample(1, torch.Generator().manual_seed(0), torch.float64)[0].numpy()
    x = np.asarray(run.task.observe(torch.from_numpy(state), 3))
    tensor, values, memory = torch.from_numpy(x).float(), x.tolist(), policy.get_buffer("start")
    with threads(1), torch.inference_mode():
        cases = {
            "`controller(observation)`, NumPy": lambda: controller(x),
            "`controller.action(state, step)`, NumPy": lambda: controller.action(state, 3),
            "`controller(observation)`, list": lambda: controller(values),
            "the same controller in torch, inference mode": lambda: policy(tensor, memory),
        }
        seconds = interleaved(cases, 3 if chosen.smoke else 25)
    rows = tuple((name, 1e6 * s, GOAL / 1e6 / s) for name, s in seconds.items())
    note = f"The guide and 256 hidden units, one observation at a time, one thread. At most {GOAL:g} us are wanted."
    yield Table("One action", ("call", "us", "times faster than wanted"), rows, note)


def training(chosen: Options, run: Run) -> Iterator[Table]:
    """One iteration, forward and back; and evaluation, in float64 with contact."""
    rows, steps = [], run.task.steps
    judged = 50 if chosen.smoke else 500
    for count in (1,) if chosen.smoke else (1, 2):
        trainer = Trainer(run)
        with threads(count):
            plan = run.task.plan(run.options, 100)
            cases = {
                "iteration": lambda trainer=trainer, plan=plan: trainer.iterate(plan),
                "evaluation": lambda trainer=trainer: evaluate_policy(run.task, trainer.policy, judged),
            }
            seconds = interleaved(cases, 2 if chosen.smoke else 10, 0.2)
        for name, batch in (("iteration", run.options.batch), ("evaluation", judged)):
            each = seconds[name]
            rows.append((f"{name}, threads: {count}", batch, 1e3 * each, steps * batch / each))
    note = (
        f"An iteration: {steps} control steps of {run.task.options.substeps} physics steps, float32, no contact, back-propagation, "
        "Adam. Evaluation: float64, contact, verdict."
    )
    yield Table("Training", ("", "episodes", "ms", "control steps per second"), tuple(rows), note)


TABLES = {"action": action, "training": training}


def main() -> None:
    chosen = options(__doc__ or "", list(TABLES))
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", Insertion)
        tables = tuple(table for name in chosen.only for table in TABLES[name](chosen, run))
    command = "python -m benchmarks.bench_insertion --markdown docs/benchmarks.md"
    publish(Report("Insertion", command, machine(), tables), chosen)


if __name__ == "__main__":
    main()
