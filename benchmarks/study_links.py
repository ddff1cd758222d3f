"""Learning to swing up a pendulum of n links, with the simulator's gradients all the way, of single steps, and without.

    bptt     back-propagation through whole episodes (SHAC with windows as long as an episode is the same)
    shac     the same with SHAC's critic beside it, which never has a say, since no window ends before its episode
    policy   SAC with policy enhancement: gradients of single steps
    sac      plain SAC

Every run is a training with the task's own options, and a judgement of its deterministic policy in float64; its result is kept in
the folder, and a study that was interrupted goes on. Times are processor time of one thread, compilation of kernels included, and
wall time; looks at the policy on the way do not count.

    python -m benchmarks.study_links --seeds 10 --links 1 7 --algorithms bptt policy sac --folder out/study_links
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import torch

from benchmarks.measure.share import add_cluster, cluster_of, shared
from benchmarks.measure.table import Table, machine
from costate.core.files import write_json
from costate.scale.choose import Cluster
from costate.tasks.link_pendulum import LinkPendulum, LinkPendulumOptions
from costate.train.evaluate import evaluate_policy
from costate.train.run import Run
from costate.train.trainer import train

GOALS = (0.49, 1.95, 4.40, 7.90, 12.40, 17.90, 24.40)
"""Mean returns that are aimed at, for 1 to 7 links."""
PUBLISHED = (0.49, 1.93, 4.28, 7.81, 12.31, 17.78, 24.34)
"""Mean returns of policy enhancement after 50,000 updates per link (Qiao et al., 2021, table 4)."""
ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "bptt": ("bptt", {}),
    "shac": ("shac", {}),
    "policy": ("sac", {"enhancement": "policy"}),
    "sac": ("sac", {}),
}
"""Name -> algorithm of the trainer, and options of it that are changed."""


@cache
def task_of(links: int) -> LinkPendulum:
    """Return the task with so many links."""
    return LinkPendulum(LinkPendulumOptions(links))


def learnt(name: str, links: int, seed: int) -> dict[str, Any]:
    """Train once; return the result: the return of the policy at the end and on the way, steps and times."""
    task = task_of(links)
    algorithm, changed = ALGORITHMS[name]
    options = replace(task.training_by(algorithm), seed=seed, **changed)
    curve: list[dict[str, float]] = []
    looking = [0.0, 0.0]  # processor and wall time of the looks

    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time(), time.perf_counter()
        run = Run.create(Path(folder) / "run", task, options)

        def spent() -> tuple[float, float]:
            return time.process_time() - begun[0] - looking[0], time.perf_counter() - begun[1] - looking[1]

        def look(row: dict[str, Any]) -> None:
            (processor, wall), at = spent(), (time.process_time(), time.perf_counter())
            found = float(evaluate_policy(task, run.policy, 1).verdict.columns["return"][0])  # all episodes are alike
            curve.append({"steps": row["control_steps"], "processor": processor, "wall": wall, "return": found})
            looking[0] += time.process_time() - at[0]
            looking[1] += time.perf_counter() - at[1]

        train(run, look)
        last = dict(zip(("processor", "wall"), spent(), strict=True))
    return {"return": curve[-1]["return"], "steps": curve[-1]["steps"], **last, "curve": curve}


def results(folder: Path) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """Return what is known: algorithm -> links -> runs."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for name in ALGORITHMS:
        for file in sorted(folder.glob(f"{name}_*.json")):
            links = int(file.stem.split("_")[1])
            found.setdefault(name, {}).setdefault(links, []).append(json.loads(file.read_text()))
    return found


def rows(found: dict[str, dict[int, list[dict[str, Any]]]]) -> Iterator[tuple[Any, ...]]:
    for name, by_links in found.items():
        for n, runs in sorted(by_links.items()):
            returns = [run["return"] for run in runs]
            spread = f"{mean(returns):.3f} +-{pstdev(returns):.3f}"
            goal, best = (GOALS[n - 1], n**2 / 2) if n <= len(GOALS) else ("-", n**2 / 2)
            times = (mean(run[k] for run in runs) for k in ("processor", "wall"))
            yield name, n, len(runs), spread, f"{min(returns):.3f}", goal, best, int(runs[0]["steps"]), *times


def table(folder: Path) -> Table:
    """Return a row for each algorithm and number of links."""
    found = results(folder)
    columns = ("algorithm", "links", "seeds", "return", "worst seed", "goal", "maximum", "control steps")
    columns += ("processor s per run", "wall s per run")
    total = {name: sum(r["processor"] for runs in by.values() for r in runs) for name, by in found.items()}
    note = "Processor time of all runs: " + ", ".join(f"{name} {s:.0f} s" for name, s in total.items()) + "."
    return Table("Pendulums of n links", columns, tuple(rows(found)), note)


def plot(folder: Path, file: Path) -> None:
    """Draw returns, as part of the largest one, against processor time: a panel for each number of links."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = results(folder)
    links = sorted({n for by in found.values() for n in by})
    columns = min(4, len(links))
    lines = -(-len(links) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.1 * columns, 2.6 * lines), dpi=110, squeeze=False)
    colours = dict(zip(ALGORITHMS, ("tab:blue", "tab:cyan", "tab:orange", "tab:grey"), strict=True))
    for place, n in zip(axes.flat, links, strict=False):
        for name, by in found.items():
            for k, run in enumerate(by.get(n, [])):
                x = [max(p["processor"], 0.1) for p in run["curve"]]
                y = [p["return"] / (n**2 / 2) for p in run["curve"]]
                place.plot(x, y, color=colours[name], linewidth=0.9, alpha=0.7, label=name if k == 0 else None)
        place.axhline(GOALS[n - 1] / (n**2 / 2) if n <= len(GOALS) else 1.0, color="black", linestyle=":", linewidth=1)
        place.set(title=f"{n} link{'s' * (n > 1)}", xscale="log", xlim=(0.3, 300), ylim=(-1.05, 1.1))
        place.grid(alpha=0.3)
    for place in axes.flat[len(links) :]:
        place.set_axis_off()
    for place in axes[:, 0]:
        place.set_ylabel("return / maximum")
    for place in axes[-1]:
        place.set_xlabel("processor time [s]")
    handles = {label: h for a in axes.flat for h, label in zip(*a.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="lower right", bbox_to_anchor=(0.98, 0.12))
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def study(algorithms: list[str], links: range, seeds: int, folder: Path, where: Cluster) -> None:
    """Do all runs that are not in the folder yet: first one seed of everything, then the next."""
    torch.set_num_threads(1)
    wanted = [(name, n, seed) for name in algorithms for seed in range(seeds) for n in links]
    cases = [case for case in wanted if not _file(folder, *case).exists()]
    for (name, n, seed), found in zip(cases, shared(learnt, cases, where), strict=True):
        write_json(_file(folder, name, n, seed), found | {"seed": seed})
        spent = f"{found['processor']:.1f} s of processor time"
        print(f"{name}, {n} links, seed {seed}: {found['return']:.4f} in {spent}", flush=True)


def _file(folder: Path, name: str, n: int, seed: int) -> Path:
    return folder / f"{name}_{n}_{seed}.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each algorithm and number of links")
    parser.add_argument("--links", type=int, nargs=2, default=(1, 7), help="fewest and most links")
    parser.add_argument("--algorithms", nargs="+", choices=list(ALGORITHMS), default=["bptt", "policy", "sac"])
    parser.add_argument("--folder", type=Path, default=Path("out/study_links"), help="where results are kept")
    parser.add_argument("--plot", type=Path, help="file of the picture; default: links.png in the folder")
    add_cluster(parser)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    study(given.algorithms, range(given.links[0], given.links[1] + 1), given.seeds, given.folder, cluster_of(given))
    text = table(given.folder).markdown()
    (given.folder / "links.md").write_text(text + "\n")
    write_json(given.folder / "links.json", {"machine": machine(), "runs": results(given.folder)})
    plot(given.folder, given.plot or given.folder / "links.png")
    print(text)


if __name__ == "__main__":
    main()
