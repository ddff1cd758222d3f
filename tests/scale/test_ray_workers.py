"""A cluster of Ray with several nodes on this machine: trainings, evaluations and sweeps have the same bits, also when a node is
killed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.scale.threads import SQUARES

from costate.cli.main import main
from costate.scale.choose import Cluster, executor
from costate.scale.ray_workers import LOOPBACK, RayPool
from costate.train.evaluate import evaluate
from costate.train.registry import find_task
from costate.train.robustness import robustness
from costate.train.run import Run
from costate.train.shards.sweep import opened
from costate.train.trainer import shared, train

HOLD = Path(__file__).parents[1] / "train" / "shards" / "hold.py"
LONGER = 60.0
"""Time by which a lost node may delay a training [s]."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that computes nothing, and two nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv(LOOPBACK, "0")
        ray = pytest.importorskip("ray")
        from ray.cluster_utils import Cluster as Nodes

        small = {"object_store_memory": 80_000_000, "include_dashboard": False}
        made: Any = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        made.workers = [made.add_node(num_cpus=1, **small) for _ in range(2)]
        yield made
        ray.shutdown()
        made.shutdown()


def test_an_address_where_nobody_listens_is_said_at_once() -> None:
    for address in ("127.0.0.1:1", "nowhere"):
        with pytest.raises(ConnectionError, match=f"no Ray cluster answers at {address}"):
            executor(SQUARES, Cluster(cluster=address))


@pytest.mark.study
def test_evaluations_are_as_in_one_process(cluster: Any, tmp_path: Path) -> None:
    where = Cluster(cluster=cluster.address, workers=2)
    run = Run.create(tmp_path / "run", find_task(HOLD))
    for judge in (lambda w: evaluate(run, 1100, where=w), lambda w: robustness(run, 50, where=w)):
        assert judge(where) == judge(Cluster())


@pytest.mark.slow
def test_sweeps_are_as_in_one_process(cluster: Any, tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    shared_by = ["--cluster", cluster.address, "--workers", "2"]
    assert main(["sweep", str(HOLD), "--set", "lr=1e-2,1e-3", "--out", str(out), *shared_by]) == 0
    assert (out / "report.html").is_file()
    alone = Run.create(tmp_path / "alone", find_task(HOLD), opened(out, trust=True)[1].run.options)
    train(alone)
    for name, tensor in alone.checkpoint().policy.items():
        assert torch.equal(tensor, opened(out, trust=True)[1].run.checkpoint().policy[name])


@pytest.mark.study
def test_the_accuracy_matrix_is_shared(cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    given = ["--matrix", "--sample", "2", "--report", str(page), "--cluster", cluster.address, "--workers", "2"]
    assert main(["gradcheck", *given]) == 0
    assert "Derivative: functions and joints" in capsys.readouterr().out and page.with_suffix(".json").is_file()


@pytest.mark.slow
def test_a_node_killed_at_a_random_moment_leaves_the_bits_alone(cluster: Any, tmp_path: Path) -> None:
    kind = find_task(HOLD)
    options = replace(kind.training, iterations=160, interval=8)
    alone, run = (Run.create(tmp_path / name, kind, options) for name in ("alone", "run"))
    train(alone)
    killed: list[float] = []

    def kill() -> None:
        time.sleep(random.uniform(0.0, 0.3))
        cluster.remove_node(cluster.workers[0], allow_graceful=False)
        killed.append(time.monotonic())

    killer = threading.Thread(target=kill)

    def watch(row: dict[str, Any]) -> None:
        assert isinstance(pool, RayPool)
        if row["iteration"] < 16 or killer.ident is not None:
            return
        if len(pool.finished) == 2:
            killer.start()
        else:  # on a busy machine one may come much later than the other
            time.sleep(0.25)

    with executor(shared(run), Cluster(cluster=cluster.address, workers=2)) as pool:
        assert isinstance(pool, RayPool)
        train(run, watch, pool)
        assert killer.ident, "the two workers were never there together"
        killer.join()
        assert time.monotonic() - killed[0] < LONGER  # what is left takes a second
        assert pool.lost and "is lost" in pool.lost[0]  # said by name
    for name, tensor in alone.checkpoint().policy.items():
        assert torch.equal(tensor, run.checkpoint().policy[name])
