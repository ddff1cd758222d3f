"""Measure how a training gains from workers: iterations with one process and with two, and what the parts of an iteration cost.

    python -m benchmarks.bench_scale [--only speed parts] [--rounds 6] [--cluster auto]

On a busy machine wall times say little: processes that are more get more of it. So each ratio is given twice, in wall time and in
processor time along the longest way: what this process spends, and what the busier of the workers does.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from benchmarks.measure.harness import Options, Report, Table, machine, options, publish, threads
from costate.scale.choose import Cluster, executor
from costate.scale.desk import Desk
from costate.scale.executor import Work
from costate.scale.message import Message
from costate.scale.pool import Pool, Worker
from costate.train.registry import find_task
from costate.train.run import Run
from costate.train.shards.gradients import summed
from costate.train.trainer import Trainer, shared

CASES = (("insertion", 1024), ("insertion", 4096), ("reach", 1024), ("reach", 4096))
CORES = (2, 64, 1024)
SPEED_NOTE = (
    "An iteration of training: draw, roll out, gradient, Adam; float32, one thread per process, shards of 512 episodes. *One, "
    "whole*: one process that computes the batch at once, which has other bits; *one*: one process, in shards; *two*: two worker "
    "processes. Best of {rounds} rounds in turns. *Ratio*: one to two, and in brackets whole to two."
)
PARTS_NOTE = (
    "Processor time, best of many. *Shard*: gradient of 512 episodes, by a worker. *Send*: packing the weights, once per "
    "iteration. *Per shard*: what the process in the middle spends on a shard: to hand it out, take its gradient and add it; and "
    "that with what 1,024 workers add to it, measured with ones that answer at once. *Adam*: clipping and step."
)
MODEL_NOTE = (
    "Time of an iteration by these parts: send + the greater of (a worker's shards x shard) and (all shards x per shard) + Adam, "
    "with two shards of 512 episodes for each core. Efficiency: share of the time in which a worker works. An extrapolation: "
    "nothing beyond 2 cores was measured, and the network is not in it."
)


class Echo(Work):
    """Nothing but messages: a gradient of zeros of a given size."""

    def __init__(self, given: Message):
        self.zeros = torch.zeros(given.note["parameters"])

    def shard(self, shard: Message) -> Message:
        note = {"size": 1, "steps": 1, "terms": {"loss": 0.0}, "measures": {}, "diverged": ""}
        return Message(note, {"gradient": self.zeros})


@dataclass
class Contestant:
    """A way to train; times of its best iteration so far [s]."""

    trainer: Trainer
    pool: Pool | None = None
    wall: float = float("inf")
    processor: float = float("inf")

    def iterate(self, number: int) -> None:
        before = dict(self.pool.spent) if self.pool else {}
        begun = time.perf_counter(), time.process_time()
        self.trainer.iterate(self.trainer.task.plan(self.trainer.options, number))
        wall, here = time.perf_counter() - begun[0], time.process_time() - begun[1]
        there = [v - before.get(k, 0.0) for k, v in self.pool.spent.items()] if self.pool else [0.0]
        if number:  # the first one compiles
            self.wall, self.processor = min(self.wall, wall), min(self.processor, here + max(there))


def speed(task: str, batch: int, rounds: int) -> tuple[str | float, ...]:
    """Return a row of the table of speeds."""
    kind = find_task(task)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:

        def run(name: str, shard: int) -> Run:
            return Run.create(Path(folder) / name, kind, replace(kind.training, batch=batch, shard=shard))

        both = run("two", 512)
        pool = stack.enter_context(executor(shared(both), Cluster(workers=2)))
        assert isinstance(pool, Pool)
        whole, one = Contestant(Trainer(run("whole", batch))), Contestant(Trainer(run("one", 512)))
        two = Contestant(Trainer(both, pool), pool)
        for number in range(rounds + 1):
            for each in (whole, one, two):
                each.iterate(number)
        check_same(one.trainer, two.trainer)
    ms = [1e3 * x for c in (whole, one, two) for x in (c.wall, c.processor)]
    ratios = [
        f"{one_:.2f} ({whole_:.2f})" for one_, whole_ in (_ratios(whole, one, two, k) for k in ("wall", "processor"))
    ]
    return task, batch, *ms[::2], ratios[0], *ms[1::2], ratios[1]


def check_same(one: Trainer, two: Trainer) -> None:
    """Refuse trainings that differ in any bit: in what they began with, in their weights, or in Adam's means of gradients."""
    begun = (t.folder.checkpoint().policy for t in (one, two))
    ended = (t.policy.state_dict() for t in (one, two))
    moments = ({f"{n} {k}": x for n, m in t.kept()["moments"].items() for k, x in m.items()} for t in (one, two))
    for what, (a, b) in (("began with", begun), ("ended with", ended), ("have gradients with", moments)):
        different = [name for name in a if not torch.equal(a[name], b[name])]
        assert not different, f"two workers {what} other bits than one process: {', '.join(different)}"


def _ratios(whole: Contestant, one: Contestant, two: Contestant, clock: str) -> tuple[float, float]:
    return getattr(one, clock) / getattr(two, clock), getattr(whole, clock) / getattr(two, clock)


def best(run: Callable[[], Any], rounds: int) -> float:
    """Return the least processor time of a call [s]."""
    found = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        run()
        found = min(found, time.process_time() - begun)
    return found


def parts(task: str, cluster: str, rounds: int) -> dict[str, float]:
    """Return what the parts of an iteration cost [s]."""
    kind = find_task(task)
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", kind, replace(kind.training, batch=512, shard=512))
        trainer, number = Trainer(run), 64
        plan = trainer.task.plan(run.options, 0)
        whole = best(lambda: trainer.iterate(plan), rounds)
        weights = Message({}, trainer.policy.state_dict())
        parameters = list(trainer.policy.parameters())

        def step() -> None:
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            trainer.adam.step()

        adam, send = best(step, 100), best(weights.packed, 100)
        given = Message({"work": "benchmarks.bench_scale:Echo", "parameters": sum(p.numel() for p in parameters)})
        with executor(given, Cluster(cluster=cluster, workers=2)) as pool:
            shards = [Message({"number": k}) for k in range(number)]
            list(pool.map(shards, weights))
            each = best(lambda: summed(pool.map(shards, weights), number), 10) / number
    many = each + max(_pool_time(given, weights, 1024) - _pool_time(given, weights, 2), 0.0)
    cost = {"shard": whole - adam, "send": send, "each": each, "many": many, "adam": adam}
    return cost | {"parameters": float(given.note["parameters"])}


class Instant(Worker):
    """A worker that answers at once, in this process: what is left is the pool's own time."""

    answers: ClassVar[tuple[bytes, bytes]] = (b"", b"")

    def start(self, given: bytes) -> Future[bytes]:
        return self._done(self.answers[0])

    def shard(self, number: int, shared: bytes | None, shard: bytes) -> Future[bytes]:
        return self._done(self.answers[1])

    def close(self) -> None:
        pass

    def _done(self, answer: bytes) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_result(answer)
        return future


def _pool_time(given: Message, weights: Message, workers: int) -> float:
    """Return the pool's time per shard with so many workers that take no time [s]."""
    desk, shards = Desk(), [Message({"number": k}) for k in range(2048)]
    Instant.answers = desk.start(given.packed()), desk.shard(1, weights.packed(), shards[0].packed())
    with Pool(given, workers, Instant) as pool:
        list(pool.map(shards, weights))
        return best(lambda: summed(pool.map(shards, weights), len(shards)), 5) / len(shards)


def model(p: dict[str, float], cores: int) -> tuple[float, float]:
    """Return time [s] and efficiency of an iteration on many cores, two shards for each."""
    work = 2 * p["shard"]
    time_ = p["send"] + max(work, 2 * cores * p["many"]) + p["adam"]
    return time_, work / time_


def tables(chosen: Options) -> list[Table]:
    """Return the tables that were asked for."""
    found, rounds = [], 2 if chosen.smoke else chosen.rest.rounds
    if "speed" in chosen.only:
        cases = CASES[:1] if chosen.smoke else CASES
        head = (
            "task",
            "batch",
            "one, whole [ms]",
            "one [ms]",
            "two [ms]",
            "ratio",
            "one, whole [ms of processor]",
            "one",
            "two",
            "ratio ",
        )
        rows = tuple(speed(task, batch, rounds) for task, batch in cases)
        found.append(Table("Two workers", head, rows, SPEED_NOTE.format(rounds=rounds)))
    if "parts" in chosen.only:
        names = ("insertion",) if chosen.smoke else ("insertion", "reach")
        cost = {task: parts(task, chosen.rest.cluster, rounds) for task in names}
        rows = tuple(
            (t, int(p["parameters"]), *(1e3 * p[k] for k in ("shard", "send", "each", "many", "adam")))
            for t, p in cost.items()
        )
        head = (
            "task",
            "parameters",
            "shard [ms]",
            "send [ms]",
            "per shard [ms]",
            "with 1,024 workers [ms]",
            "Adam [ms]",
        )
        found.append(Table(f"Parts of an iteration, workers: {chosen.rest.cluster}", head, rows, PARTS_NOTE))
        shown = [(t, n, 1024 * n, *model(p, n), p["shard"] / p["many"]) for t, p in cost.items() for n in CORES]
        grown = tuple((t, n, batch, 1e3 * s, f"{100 * e:.0f} %", round(most)) for t, n, batch, s, e, most in shown)
        head = (
            "task",
            "cores",
            "batch",
            "iteration [ms]",
            "efficiency",
            "cores at which the middle is as busy as a worker",
        )
        found.append(Table("Extrapolated", head, grown, MODEL_NOTE))
    return found


def main() -> None:
    """Measure and publish."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=8, help="rounds, of which the best counts")
        parser.add_argument(
            "--cluster", default="local", help="workers of the table of parts: local, auto or an address"
        )

    chosen = options(__doc__ or "", ["speed", "parts"], add)
    with threads(1):
        found = tables(chosen)
    publish(Report("Trainings that are shared", "python -m benchmarks.bench_scale", machine(), tuple(found)), chosen)


if __name__ == "__main__":
    main()
