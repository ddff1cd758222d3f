"""Contact that helps: how success falls with an offset of the socket that nobody sees, with and without training through contact.

A socket with a chamfer (`costate train insertion --chamfered`), 0 to 1.5 mm from where the controller is told it is. Beside the
guide alone: the same network, trained for as many iterations, in the world without contact and in the one with it. All are judged
by the same criteria in Costate's world and in MuJoCo (extra "mjcf"), there in fewer episodes and with shorter physics steps.

    python -m benchmarks.study_chamfer --markdown docs/insertion_contact.md --plot docs/plots/insertion_chamfer.png
"""

from __future__ import annotations

import copy
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
from costate.tasks.insertion.mujoco.scene import MujocoScene, run_in_mujoco
from costate.tasks.insertion.training import FELT, InsertionTraining
from costate.train.policy import acting
from costate.train.run import Run
from costate.train.streams import generator
from costate.train.trainer import train

Episodes = dict[str, int]
EPISODES: Episodes = {"Costate": 1000, "MuJoCo": 30}
"""Engine -> number of episodes of each offset."""
FINER = 4
"""Physics steps in MuJoCo for each of ours: it finds contact only in the step after it has begun."""
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


def tried(
    task: Insertion, policy: nn.Module, offset: float, episodes: int, scene: MujocoScene | None = None
) -> Metrics:
    """Return the results of held-out episodes whose socket is so far from where it is seen [mm]; in MuJoCo, if there is a scene."""
    controller = acting(copy.deepcopy(policy).double())
    drawn = draw(task, episodes, generator("held out", 0), Disturbances(target_offset=1e-3 * offset), torch.float64)
    with torch.no_grad():
        found = run_in_mujoco(task, scene, controller, drawn) if scene else run(task, task.world, controller, drawn)
    return summarise(task, judge(task, found))


Found = dict[tuple[str, str], list[list[Metrics]]]
"""(way, engine) -> results by seed and offset."""


def measure(task: Insertion, ways: Sequence[str], seeds: Sequence[int], episodes: Episodes, smoke: bool) -> Found:
    found: Found = {}
    scenes = {"Costate": None, "MuJoCo": MujocoScene(task, FINER * task.options.substeps)}
    for name in ways:
        contact = WAYS[name]
        for seed in seeds if contact is not None else seeds[:1]:
            policy, seconds = trained(task, contact, seed, smoke)
            for engine, scene in scenes.items():
                if scene and seed != seeds[0]:
                    continue  # it takes as long as training
                results = [tried(task, policy, offset, episodes[engine], scene) for offset in OFFSETS]
                found.setdefault((name, engine), []).append(results)
                shares = ", ".join(f"{100 * m.success:.1f}" for m in results)
                print(f"{name}, seed {seed}, {engine}: {seconds:.0f} s of training; success {shares} %", flush=True)
    return dict(sorted(found.items(), key=lambda item: item[0][1]))


def tables(found: Found, episodes: Episodes) -> tuple[harness.Table, ...]:
    rows, whys = [], []
    for (way, engine), runs in found.items():
        name = f"{engine}: {way}"
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
    count = ", ".join(f"{number:,} held-out episodes each in {engine}" for engine, number in episodes.items())
    count += "; lowest and highest of the seeds (in MuJoCo the first seed only, and physics steps a quarter as long)."
    first = harness.Table("Success by offset", ("", *offsets), tuple(rows), count)
    columns = ("stayed in place", "stayed at rest", "no overlap", "within limits", "peak acceleration [rad/s^2]")
    second = harness.Table(
        "What fails at 1 mm", ("", *columns, "peak jerk [rad/s^3]"), tuple(whys), "Means over the seeds."
    )
    return first, second


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def plot(found: Found, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.4), dpi=110)
    for (way, engine), runs in found.items():
        style: dict[str, Any] = {"color": f"C{list(WAYS).index(way)}", "linestyle": "--" if engine == "MuJoCo" else "-"}
        for k, each in enumerate(runs):
            shares = [100 * m.success for m in each]
            axes.plot(OFFSETS, shares, marker=".", label=f"{engine}: {way}" if k == 0 else None, **style)
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
    task = Insertion(InsertionOptions().chamfered())
    episodes = {"Costate": 20, "MuJoCo": 2} if chosen.smoke else EPISODES
    found = measure(task, chosen.only, range(chosen.rest.seeds), episodes, chosen.smoke)
    command = f"python -m benchmarks.study_chamfer --seeds {chosen.rest.seeds}"
    harness.publish(harness.Report("Measured", command, harness.machine(), tables(found, episodes)), chosen)
    if chosen.rest.plot:
        plot(found, chosen.rest.plot)


if __name__ == "__main__":
    main()
