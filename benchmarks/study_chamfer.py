"""Contact that helps: how success falls with an offset of the socket that nobody sees, with and without training through contact.

A socket with a chamfer (`costate train insertion --chamfered`), 0 to 1.5 mm from where the controller is told it is. Beside the
guide alone: the same network, trained for as many iterations, in the world without contact
and in the one with it.

    python -m benchmarks.study_chamfer --markdown docs/insertion_contact.md --plot docs/plots/insertion_chamfer.png
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.measure import harness
from costate.tasks.insertion import Disturbances, Insertion, InsertionOptions, draw, judge, run, summarise
from costate.tasks.insertion.judge import Metrics
from costate.tasks.insertion.loss import InsertionWeights
from costate.tasks.insertion.training import FELT, InsertionTraining
from costate.train.policy import acting
from costate.train.run import Run
from costate.train.streams import generator
from costate.train.trainer import train

OFFSETS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""Offsets of the socket [mm]."""
WAYS = {"guide alone": None, "trained without contact": 0.0, "trained through contact": 1.0}
"""Name -> part of the iterations that has contact; None: no training."""


def trained(task: Insertion, contact: float | None, seed: int, smoke: bool) -> tuple[nn.Module, float]:
    """Return a policy, and the processor time of its training [s]."""
    chosen = {**FELT, "contact_fraction": contact or 0.0, "iterations": 2 if smoke else FELT["iterations"]}
    weights = {name.removeprefix("weights."): value for name, value in chosen.items() if "." in name}
    plain: dict[str, Any] = {name: value for name, value in chosen.items() if "." not in name}
    options = InsertionTraining(weights=InsertionWeights(**weights), seed=seed, watch_interval=0, threads=1, **plain)
    if contact is None:
        return task.policy(options, generator("weights", seed)), 0.0
    with tempfile.TemporaryDirectory() as folder:
        made = Run.create(Path(folder) / "run", task, options)
        begun = time.process_time()
        train(made)
        return made.policy, time.process_time() - begun


def tried(task: Insertion, policy: nn.Module, offset: float, episodes: int) -> Metrics:
    """Return the results of held-out episodes whose socket is so far from where it is seen [mm]."""
    disturbances = Disturbances(target_offset=1e-3 * offset)
    with torch.no_grad():
        found = run(task, task.world, acting(policy), draw(task, episodes, generator("held out", 0), disturbances))
    return summarise(task, judge(task, found))


def measure(
    task: Insertion, ways: Sequence[str], seeds: Sequence[int], episodes: int, smoke: bool
) -> dict[str, list[list[Metrics]]]:
    """Return results by way, seed and offset."""
    found: dict[str, list[list[Metrics]]] = {}
    for name in ways:
        found[name], contact = [], WAYS[name]
        for seed in seeds if contact is not None else seeds[:1]:
            policy, seconds = trained(task, contact, seed, smoke)
            found[name].append([tried(task, policy, offset, episodes) for offset in OFFSETS])
            shares = ", ".join(f"{100 * m.success:.1f}" for m in found[name][-1])
            print(f"{name}, seed {seed}: {seconds:.0f} s of training; success {shares} %", flush=True)
    return found


def tables(found: dict[str, list[list[Metrics]]], episodes: int) -> tuple[harness.Table, ...]:
    rows, whys = [], []
    for name, runs in found.items():
        cells = []
        for each in zip(*runs, strict=True):
            shares = sorted({f"{100 * m.success:.1f}" for m in each}, key=float)
            cells.append(" to ".join(dict.fromkeys([shares[0], shares[-1]])) + " %")
        rows.append((name, *cells))
        at = [r[OFFSETS.index(1.0)] for r in runs]
        shares = [[getattr(m, k) for m in at] for k in ("kept_place", "kept_still", "no_penetration", "within_limits")]
        peaks = [[getattr(m, k) for m in at] for k in ("peak_acceleration", "peak_jerk")]
        whys.append((name, *(f"{100 * _mean(s):.1f} %" for s in shares), *(f"{_mean(p):,.0f}" for p in peaks)))
    offsets = tuple(f"{offset:g} mm" for offset in OFFSETS)
    count = f"{episodes:,} held-out episodes each; lowest and highest of the seeds."
    first = harness.Table("Success by offset", ("", *offsets), tuple(rows), count)
    columns = ("stayed in place", "stayed at rest", "no overlap", "within limits", "peak acceleration [rad/s^2]")
    second = harness.Table(
        "What fails at 1 mm", ("", *columns, "peak jerk [rad/s^3]"), tuple(whys), "Means over the seeds."
    )
    return first, second


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def plot(found: dict[str, list[list[Metrics]]], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.4), dpi=110)
    for number, (name, runs) in enumerate(found.items()):
        for k, each in enumerate(runs):
            shares = [100 * m.success for m in each]
            axes.plot(OFFSETS, shares, marker=".", color=f"C{number}", label=name if k == 0 else None)
    axes.set(xlabel="offset of the socket [mm]", ylabel="success [%]", ylim=(-3, 103))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def main() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind")
        parser.add_argument("--plot", type=Path, metavar="FILE", help="draw success by offset")

    chosen = harness.options(__doc__ or "", list(WAYS), more)
    torch.set_num_threads(1)
    task, episodes = Insertion(InsertionOptions().chamfered()), 20 if chosen.smoke else 1000
    found = measure(task, chosen.only, range(chosen.rest.seeds), episodes, chosen.smoke)
    command = "python -m benchmarks.study_chamfer"
    harness.publish(harness.Report("Measured", command, harness.machine(), tables(found, episodes)), chosen)
    if chosen.rest.plot:
        plot(found, chosen.rest.plot)


if __name__ == "__main__":
    main()
