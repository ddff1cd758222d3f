"""Benchmark of throughput: steps of environments in batches with random actions, beside gymnasium's own, Brax and MJX.

python -m benchmarks.bench_throughput [--smoke] [--json FILE] [--markdown FILE] [--peer-python PYTHON]
python -m benchmarks.bench_throughput --markdown docs/throughput.md     # what the docs show

Brax and MJX run in an environment of their own, which is made once, or by --peer-python. What cannot be imported is left out,
and named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish
from benchmarks.peers.peer import Peer
from benchmarks.peers.process import ONE_THREAD
from benchmarks.peers.venvs import PEER_PYTHON, interpreter

WORKER = Path(__file__).parent / "throughput" / "worker.py"
JAX = Peer("environments", "Brax and MJX", ("brax", "mujoco-mjx", "gymnasium[mujoco]", "jax"), "`jit` of `vmap`")
"""Environment of the peers."""


@dataclass(frozen=True)
class Case:
    """Environments of an engine."""

    robot: str
    title: str
    engine: str
    name: str
    count: int
    threads: int = 1
    reference: bool = False
    """True: others of this robot are compared with it."""

    @property
    def is_peer(self) -> bool:
        """True if it runs in the peers' interpreter."""
        return self.engine in ("brax", "mjx")


def cases(smoke: bool) -> list[Case]:
    """Return what is measured."""
    if smoke:
        return [Case("cartpole", "Costate", "costate", "costate/Cartpole-v0", 16, reference=True)]
    found = []
    for robot, file, substeps in (("Ant", "ant.xml", 5), ("Hopper", "hopper.xml", 4)):
        task = robot.lower()
        found += [
            Case(robot, f"`costate/{robot}-v5`", "costate", f"costate/{robot}-v5", 1024, reference=True),
            Case(robot, f"`costate/{robot}-v5`", "costate", f"costate/{robot}-v5", 1024, 2),
            Case(robot, f"`costate/{robot}-v0` (SHAC's)", "costate", f"costate/{robot}-v0", 1024),
            Case(robot, f"gymnasium `{robot}-v5`, sync", "sync", f"{robot}-v5", 8),
            Case(robot, f"gymnasium `{robot}-v5`, async", "async", f"{robot}-v5", 8, 2),
            Case(robot, "MJX, physics alone", "mjx", f"{file}:{substeps}", 1024),
            Case(robot, "Brax, spring", "brax", f"{task}:spring", 1024),
            Case(robot, "Brax, generalized", "brax", f"{task}:generalized", 1024),
        ]
    return found


class Worker:
    """A process that measures one case."""

    def __init__(self, case: Case, python: str):
        command = [python, str(WORKER), case.engine, case.name, str(case.count), str(case.threads)]
        one = ONE_THREAD if case.threads == 1 else {"JAX_PLATFORMS": "cpu"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | one,
        )
        answer = self._answer()
        self.error = answer.get("error", "")

    def measure(self, seconds: float) -> dict[str, Any]:
        """Let it run for some seconds; return steps, wall and processor seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended with code {self.process.wait()}"}

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def measured(chosen: Options) -> tuple[dict[Case, tuple[float, float]], dict[Case, str]]:
    """Return (steps per second, steps per processor second) of each case, the best of several rounds in turn, and what failed."""
    rounds, seconds = (2, 0.05) if chosen.smoke else (5, 1.0)
    peers = str(interpreter(JAX, chosen.rest.peer_python, chosen.smoke))
    found: dict[Case, tuple[float, float]] = {}
    failed: dict[Case, str] = {}
    everything = cases(chosen.smoke)
    for robot in dict.fromkeys(case.robot for case in everything):
        workers = {}
        for case in everything:
            if case.robot != robot:
                continue
            worker = Worker(case, peers if case.is_peer else sys.executable)
            if worker.error:
                failed[case] = worker.error
                worker.stop()
            else:
                workers[case] = worker
        for _ in range(rounds):
            for case, worker in workers.items():
                told = worker.measure(seconds)
                rate = told["steps"] / told["wall"], told["steps"] / max(told["processor"], 1e-9)
                best = found.get(case, (0.0, 0.0))
                found[case] = max(best[0], rate[0]), max(best[1], rate[1])
        for worker in workers.values():
            worker.stop()
    return found, failed


def table(chosen: Options) -> Iterator[Table]:
    """Steps per second, and how many times as many those of Costate are."""
    found, failed = measured(chosen)
    ours = {case.robot: found[case] for case in found if case.reference}
    rows = [
        (case.robot, case.title, case.count, case.threads, *rate, ours[case.robot][1] / rate[1])
        for case, rate in found.items()
    ]
    skipped = [f"{case.robot}, {case.title}: {reason}" for case, reason in failed.items()]
    note = (
        "Control steps of all environments together, with observations, rewards and new episodes (MJX: physics alone), random "
        "actions, float32 (gymnasium: float64). Wall time counts what else runs on the machine, processor time (of all threads) "
        "does not. Last column: steps per processor second of the first line of a robot over those of this line."
    )
    if skipped:
        note += " Left out: " + "; ".join(skipped) + "."
    columns = (
        "robot",
        "environment",
        "at once",
        "threads",
        "steps/s",
        "steps per processor second",
        "Costate is x times",
    )
    yield Table("Steps of environments", columns, tuple(rows), note)


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--peer-python", help=PEER_PYTHON)


def main() -> None:
    chosen = options(__doc__ or "", ["steps"], _add)
    publish(Report("Throughput", "python -m benchmarks.bench_throughput", machine(), tuple(table(chosen))), chosen)


if __name__ == "__main__":
    main()
