"""Sweeps by Ray Tune: the runs that go on are as one process trains them, and bad ones end early."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.endings import is_running

from costate.cli.main import main
from costate.scale.message import Message
from costate.train.registry import find_task
from costate.train.run import Run
from costate.train.shards.sweep import Trainings, create, opened, settings
from costate.train.trainer import train

HOLD = Path(__file__).parent / "hold.py"
pytest.importorskip("ray.tune")


@pytest.fixture
def ray() -> Iterator[Any]:
    import ray

    yield ray
    ray.shutdown()


def test_parts_are_passed_on_and_told_again_after_a_break(tmp_path: Path) -> None:
    from costate.train.shards.asha import WORST, Folders

    kind = find_task(HOLD)
    options = settings(kind.options, replace(kind.training, interval=2), {"lr": ["1e-2", "1e-3"]})
    good, bad = (e.run for e in create(tmp_path / "sweep", kind, options, [0]))
    bad.save(replace(p := bad.checkpoint(), policy={k: torch.full_like(t, torch.nan) for k, t in p.policy.items()}))
    folders, work = Folders(str(tmp_path / "sweep"), "loss", trust=True), Trainings(Message())
    told = []
    while not told or not told[-1]["done"]:
        part = Message.unpacked(folders.part(good.path.name))
        found = (
            work.shard(part) if part.tensors else Message()
        )  # six checkpoints: some of the ten parts have nothing to do
        told.append(folders.take(good.path.name, found.packed()))
    assert [t["part"] for t in told] == list(range(1, 11)) and good.finished
    assert told[-1]["score"] < told[0]["score"] == good.metrics()[0]["loss"]
    found = work.shard(Message.unpacked(folders.part(bad.path.name)))
    assert folders.take(bad.path.name, found.packed()) == {"part": 1, "score": WORST, "done": True}
    again = Folders(str(tmp_path / "sweep"), "loss", trust=True)
    assert not Message.unpacked(again.part(good.path.name)).tensors  # nothing is computed twice
    assert [again.take(good.path.name, Message().packed()) for _ in range(10)] == told


@pytest.mark.slow
def test_bad_runs_end_early_on_a_cluster(ray: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With one run at a time their order is known: the best comes first, and those after it end at the first rung."""
    out = tmp_path / "sweep"
    given = ["--set", "lr=1e-2,1e-6,1e-7,1e-8", "--iterations", "40", "--interval", "2", "--out", str(out)]
    assert main(["sweep", str(HOLD), *given, "--asha", "--workers", "1"]) == 0
    assert "learning_rate=1e-2, seed 0: iteration 40/40, loss" in capsys.readouterr().out
    runs = [e.run for e in opened(out, trust=True)]
    assert [run.checkpoint().iteration for run in runs] == [40, 4, 4, 4]
    alone = Run.create(tmp_path / "alone", find_task(HOLD), runs[0].options)
    train(alone)
    for name, tensor in alone.checkpoint().policy.items():
        assert torch.equal(tensor, runs[0].checkpoint().policy[name])
    page = (out / "report.html").read_text()
    assert page.count("stopped early") == 3 and "Sweep of hold" in page


@pytest.mark.study
def test_a_sweep_that_is_ended_takes_its_trials_along(tmp_path: Path) -> None:
    given = ["--set", "lr=1e-2,1e-3", "--iterations", "2000", "--interval", "20", "--out", str(tmp_path / "sweep")]
    command = [sys.executable, "-m", "costate.cli", "sweep", str(HOLD), *given, "--asha", "--workers", "1"]
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, text=True) as sweep:
        assert sweep.stdout
        trial = next(int(found[1]) for line in sweep.stdout if (found := re.search(r"on \S+/(\d+)$", line)))
        assert is_running(trial)
        sweep.send_signal(signal.SIGTERM)
        assert sweep.wait(60) > 0  # it was not aborted
    assert not is_running(trial, 30.0)
