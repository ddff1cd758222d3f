"""Benchmark of learning by reward: steps of vector environments, and what an iteration of SHAC costs.

python -m benchmarks.bench_envs [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...]
python -m benchmarks.bench_envs --markdown docs/benchmarks.md         # what the docs show
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch

import costate.envs
from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish, threads
from costate.train.registry import find_task
from costate.train.reinforce.shac import Shac
from costate.train.run import Run

PUBLISHED_NETWORKS = {"actor": (128, 64, 32), "critic": (64, 64)}
"""Units of the networks of Xu et al. (2022); the ant's own are larger."""
NAMES = ("costate/Reach-v0", "costate/Insertion-v0", "costate/Hopper-v0", "costate/Ant-v0")


def environments(chosen: Options) -> Iterator[Table]:
    """Steps of environments, observations, rewards and new episodes included."""
    count, names = (16, NAMES[:1]) if chosen.smoke else (1024, NAMES)
    assert costate.envs.ENVIRONMENTS.keys() >= set(names)
    with threads(1):
        cases = {}
        for name in names:
            envs = gymnasium.make_vec(name, num_envs=count)
            envs.reset(seed=0)
            action = np.random.default_rng(0).uniform(-1, 1, envs.action_space.shape or ()).astype(np.float32)
            cases[name] = lambda envs=envs, action=action: envs.step(action)
        seconds = interleaved(cases, 2 if chosen.smoke else 15, 0.1)
    rows = tuple((f"`{name}`", 1e6 * s / count, count / s) for name, s in seconds.items())
    yield Table("Vector environments", ("environment", "us per step", "steps/s"), rows, f"{count} at once, one thread.")


def shac(chosen: Options) -> Iterator[Table]:
    """Parts of an iteration of SHAC: the window with its gradient, the updates of actor and critic, and the rest."""
    names = [(task, batch, {}) for task, batch in (("cartpole", 64), ("hopper", 256), ("ant", 64), ("ant", 256))]
    names += [("ant", batch, PUBLISHED_NETWORKS) for batch in (64, 256)]
    rows = []
    for task, batch, changes in names[:1] if chosen.smoke else names:
        name = f"{task}, published networks" if changes else task
        for count in (1,) if chosen.smoke else (1, 2):
            each = _parts_of(task, batch, count, 2 if chosen.smoke else 10, changes)
            parts = [each[part] for part in ("window", "actor", "critic")]
            rest = each["all"] - sum(parts)
            rows.append((name, f"{batch} x 32", count, *parts, rest, each["all"], 1e6 / each["all"]))
    columns = ("task", "robots x steps", "threads", "window", "actor", "critic", "rest", "iteration", "steps/s")
    note = (
        "us per control step of a robot, float32: processor time with one thread, wall time with two. Window: steps of all robots "
        "with the actor inside, and its gradient with respect to actions; actor, critic: their updates; rest: values, returns, new "
        "starts, statistics."
    )
    yield Table("SHAC", columns, tuple(rows), note)


def _parts_of(name: str, batch: int, count: int, rounds: int, changes: Mapping[str, Any]) -> dict[str, float]:
    """Return the time of the parts of an iteration [us per step]."""
    with tempfile.TemporaryDirectory() as folder, threads(count):
        task = find_task(name)
        options_ = replace(task.training, batch=batch, horizon=32, threads=count, **changes)
        run = Run.create(Path(folder) / "run", task, options_)
        training = Shac(run)
        plan, random = run.task.plan(options_, 0), torch.Generator().manual_seed(0)
        rolled = training.roll(random)
        training.loss(rolled).backward()
        cases = {
            "all": lambda: training.iterate(plan),
            "window": lambda: training.roll(random).window.reward.sum().backward(),
            "actor": lambda: training.move_actor(rolled, plan.learning_rate),
            "critic": lambda: training.learn_more(rolled, random, plan),
        }
        seconds = interleaved(cases, rounds, 0.2, time.process_time if count == 1 else time.perf_counter)
    return {part: 1e6 * s / (batch * 32) for part, s in seconds.items()}


TABLES = {"environments": environments, "shac": shac}


def main() -> None:
    chosen = options(__doc__ or "", list(TABLES))
    tables = tuple(table for name in chosen.only for table in TABLES[name](chosen))
    publish(Report("Learning by reward", "python -m benchmarks.bench_envs", machine(), tables), chosen)


if __name__ == "__main__":
    main()
