"""Benchmark of learning by reward: steps of vector environments, and what an iteration of SHAC costs.

python -m benchmarks.bench_envs [--smoke] [--json FILE] [--markdown FILE] [--only TABLE ...]
python -m benchmarks.bench_envs --markdown docs/benchmarks.md         # what the docs show
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import torch

import costate.envs
from benchmarks.measure.harness import Options, Report, Table, interleaved, machine, options, publish, threads
from costate.train.registry import find_task
from costate.train.reinforce.shac import Shac
from costate.train.run import Run

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
    """Parts of an iteration: the window with its gradient, and all of it."""
    rows = []
    for name in ("cartpole",) if chosen.smoke else ("cartpole", "hopper", "ant"):
        with tempfile.TemporaryDirectory() as folder, threads(1):
            run = Run.create(Path(folder) / "run", find_task(name))
            training, o = Shac(run), run.options
            plan = run.task.plan(o, 0)
            cases = {
                "all": lambda training=training, plan=plan: training.iterate(plan),
                "window": lambda training=training: _window(training),
            }
            seconds = interleaved(cases, 2 if chosen.smoke else 10, 0.2)
        steps = o.batch * o.horizon
        each = {part: 1e6 * s / steps for part, s in seconds.items()}
        rows.append((name, f"{o.batch} x {o.horizon}", each["window"], each["all"], 1e6 / each["all"]))
    columns = ("task", "robots x steps", "window and its gradient, us per step", "iteration, us per step", "steps/s")
    yield Table(
        "SHAC", columns, tuple(rows), "One thread, float32; the iteration has the actor's and the critic's updates."
    )


def _window(training: Shac) -> None:
    """Simulate a window of robots with the actor inside, and its gradient."""
    o, (nx, m, _) = training.options, training.task.size
    noise = torch.zeros(o.batch, o.horizon, m, dtype=torch.float32)
    fresh = training.carry[:, None, :nx].expand(-1, o.horizon, -1).contiguous()
    push = torch.zeros_like(noise, requires_grad=True)
    scaling = training.policy.mean, training.policy.scale
    training.loop(training.carry, noise, fresh, scaling, 1.0, push).reward.sum().backward()


TABLES = {"environments": environments, "shac": shac}


def main() -> None:
    chosen = options(__doc__ or "", list(TABLES))
    tables = tuple(table for name in chosen.only for table in TABLES[name](chosen))
    publish(Report("Learning by reward", "python -m benchmarks.bench_envs", machine(), tables), chosen)


if __name__ == "__main__":
    main()
