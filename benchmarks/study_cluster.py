"""Kill nodes of a cluster at random moments of trainings: do they end with the same bits, and how much later?

    python -m benchmarks.study_cluster [--runs 20] [--only nodes head] [--markdown docs/scale.md]

The cluster is a real one of Ray, with a head that computes nothing and two nodes with one worker each, all on this machine. In
each run a random node is killed (SIGKILL of all its processes) at a random moment; the other one does the rest, and a new node
joins before the next run, so its worker may still be starting when the next kill comes. The runs follow each other with the same
pool of workers. Then the head is killed, and the training goes on with --resume.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish
from costate.scale.choose import Cluster, executor
from costate.scale.pool import Pool
from costate.scale.ray_workers import LOOPBACK, patiently
from costate.train.registry import find_task
from costate.train.run import Run
from costate.train.trainer import shared, train

LIMIT = 60.0
"""Time by which a lost node may delay a training [s]."""
TASK = "reach"
NODE = {"object_store_memory": 80_000_000, "include_dashboard": False}


def options_of(smoke: bool) -> Any:
    """Return the options of the trainings."""
    kind = find_task(TASK)
    return replace(
        kind.training, iterations=20 if smoke else 40, batch=64, shard=16, hidden=32, interval=10, watch_interval=0
    )


def cluster() -> tuple[Any, list[Any]]:
    """Start a head and two nodes; return the cluster, and the nodes."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", LOOPBACK: "0"}
    from ray.cluster_utils import Cluster as Nodes

    made: Any = patiently(lambda: Nodes(initialize_head=True, head_node_args={"num_cpus": 0, **NODE}))
    return made, [added(made) for _ in range(2)]


def added(made: Any) -> Any:
    """Return a node that has joined a cluster."""
    return patiently(lambda: made.add_node(num_cpus=1, **NODE))


def trained(run: Run, pool: Pool, kill: Callable[[int], None] | None = None) -> tuple[float, list[str]]:
    """Train on a cluster; return how long it took [s], and what was said about lost workers. kill: called in a thread, with the
    number of the first iteration as the pool counts them."""
    said, first = len(pool.lost), pool.number
    thread, begun = threading.Thread(target=lambda: kill(first) if kill else None, daemon=True), time.monotonic()
    thread.start()
    train(run, executor=pool)
    seconds = time.monotonic() - begun
    pool.number += 2  # for whoever waits for the next iteration
    thread.join()
    return seconds, pool.lost[said:]


def same(a: Run, b: Run) -> bool:
    """Tell whether two runs have the same weights and moments, bit for bit."""
    one, other = a.checkpoint(), b.checkpoint()
    return (
        one.iteration == other.iteration
        and all(torch.equal(t, other.policy[k]) for k, t in one.policy.items())
        and all(torch.equal(t, other.moments[k][m]) for k, s in one.moments.items() for m, t in s.items())
    )


def nodes_killed(folder: Path, runs: int, smoke: bool) -> Table:
    """Return the table of runs in which a node was killed."""
    kind, chance = find_task(TASK), random.Random(1)
    alone = Run.create(folder / "alone", kind, options_of(smoke))
    train(alone)
    made, nodes = cluster()
    rows: list[tuple[str | float, ...]] = []
    usual: list[float] = []
    with executor(shared(alone), Cluster(cluster=made.address, workers=2)) as pool:
        assert isinstance(pool, Pool)
        for number in range(runs):
            while len(nodes) < 2:
                nodes.append(added(made))
            if number % 10 == 0:
                usual.append(trained(Run.create(folder / f"usual-{number}", kind, options_of(smoke)), pool)[0])
            at = chance.randrange(alone.options.iterations - 4)
            killing = Killing(pool, made, nodes, at, chance.uniform(0.0, 0.2), chance)
            run = Run.create(folder / f"run-{number}", kind, options_of(smoke))
            seconds, lost = trained(run, pool, killing)
            same_bits = "yes" if same(alone, run) else "NO"
            rows.append((str(number), str(at), seconds, killing.stopped, str(len(lost)), same_bits))
            print(*rows[-1], sep="  ", flush=True)
    import ray

    ray.shutdown()
    made.shutdown()
    return _table(rows, usual)


@dataclass
class Killing:
    """The end of a random node, some time after the start of an iteration."""

    pool: Pool
    cluster: Any
    nodes: list[Any]
    at: int
    """Number of the iteration."""
    later: float
    """Time after its start [s]."""
    chance: random.Random
    stopped: float = 0.0
    """Time from the kill to the end of the iteration after the one that it hit [s]."""

    def __call__(self, first: int) -> None:
        while self.pool.number <= first + self.at:
            time.sleep(0.002)
        time.sleep(self.later)
        node, hit = self.nodes.pop(self.chance.randrange(len(self.nodes))), self.pool.number
        begun = time.monotonic()
        self.cluster.remove_node(node, allow_graceful=False)
        while self.pool.number < hit + 2:
            time.sleep(0.002)
        self.stopped = time.monotonic() - begun


def _table(rows: list[tuple[str | float, ...]], usual: list[float]) -> Table:
    good, in_time = sum(row[-1] == "yes" for row in rows), sum(float(row[3]) <= LIMIT for row in rows)
    longest = max(float(row[3]) for row in rows)
    note = (
        f"{good} of {len(rows)} runs ended with the bits of one process, {in_time} of them with a pause of at most {LIMIT:.0f} s; "
        f"the longest took {longest:.1f} s. An undisturbed run took {min(usual):.1f} to {max(usual):.1f} s. "
        "*Killed*: in which iteration. *Pause*: from the kill to the end of the iteration after the one that it hit."
    )
    head = ("run", "killed in", "took [s]", "pause [s]", "losses said", "same bits")
    return Table("A node is killed", head, tuple(rows), note)


def head_killed(folder: Path, smoke: bool) -> Table:
    """Return the table of a run whose head was killed, and which was resumed."""
    kind, o = find_task(TASK), options_of(smoke)
    alone = Run.create(folder / "alone", kind, o)
    train(alone)
    made, _ = cluster()
    names = ("iterations", "batch", "shard", "hidden", "interval", "watch_interval")
    given = [x for n in names for x in (f"--{n.replace('_', '-')}", str(getattr(o, n)))]
    command = [sys.executable, "-m", "costate.cli", "train", TASK, *given, "--no-tensorboard"]
    cut = folder / "cut"
    process = subprocess.Popen([*command, "--out", str(cut), "--cluster", made.address, "--workers", "2"])
    while process.poll() is None and not (cut.is_dir() and Run.open(cut).metrics()):
        time.sleep(0.1)
    made.head_node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
    begun = time.monotonic()
    try:
        code = str(process.wait(300))
    except subprocess.TimeoutExpired:
        process.kill()
        code = "none in 300 s: killed"
    ended, reached = time.monotonic() - begun, Run.open(cut).checkpoint().iteration
    subprocess.run([sys.executable, "-m", "costate.cli", "train", "--resume", str(cut), "--workers", "2"], check=True)
    made.shutdown()
    row = (code, ended, f"{reached} of {o.iterations}", "yes" if same(alone, Run.open(cut)) else "NO")
    return Table(
        "The head is killed", ("exit code", "ended after [s]", "checkpoint", "same bits after --resume"), (row,)
    )


def main() -> None:
    """Run the study and publish it."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--runs", type=int, default=20, help="trainings in which a node is killed")

    chosen: Options = options(__doc__ or "", ["nodes", "head"], add)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        if "nodes" in chosen.only:
            runs = 2 if chosen.smoke else chosen.rest.runs
            found.append(nodes_killed(Path(folder) / "nodes", runs, chosen.smoke))
        if "head" in chosen.only:
            found.append(head_killed(Path(folder) / "head", chosen.smoke))
    publish(Report("Nodes that are lost", "python -m benchmarks.study_cluster", machine(), tuple(found)), chosen)


if __name__ == "__main__":
    main()
