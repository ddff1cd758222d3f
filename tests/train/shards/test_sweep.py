"""Sweeps: which runs there are, that they are as one process trains them, and which are dropped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.scale.threads import ThreadWorker

from costate.cli.main import main
from costate.scale.executor import InProcess
from costate.scale.message import Message
from costate.scale.pool import Pool
from costate.train.registry import find_task
from costate.train.run import Run
from costate.train.shards.sweep import WORK, create, opened, score, settings, sweep
from costate.train.trainer import train

HOLD = Path(__file__).parent / "hold.py"
GIVEN = Message({"work": WORK})


@pytest.fixture(scope="module")
def kind() -> Any:
    return find_task(HOLD)


def test_all_combinations_are_made(kind: Any) -> None:
    found = settings(kind.options, kind.training, {"lr": ["1e-2", "3e-2"], "task.reach": ["0.5"], "hidden": ["4", "8"]})
    assert list(found)[1] == "learning_rate=1e-2, task.reach=0.5, hidden=8"
    task, training = found["learning_rate=3e-2, task.reach=0.5, hidden=4"]
    assert (task.reach, training.learning_rate, training.hidden) == (0.5, 0.03, 4)
    assert task.steps == kind.options.steps
    assert list(settings(kind.options, kind.training, {})) == ["as usual"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"speed": ["1"]}, "--set speed: no such option; there are iterations"),
        ({"task.mass": ["1"]}, "--set task.mass: no such option; there are steps"),
        ({"hidden": ["1.5"]}, "'1.5' is not a value of type int"),
        ({"clip": ["-1"]}, "clip is -1.0; it must be above 0"),
    ],
)
def test_mistakes_are_said(kind: Any, given: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(kind.options, kind.training, given)


def test_runs_are_as_one_process_trains_them(kind: Any, tmp_path: Path) -> None:
    entries = create(tmp_path / "sweep", kind, settings(kind.options, kind.training, {"lr": ["1e-2", "1e-3"]}), [3, 4])
    with Pool(GIVEN, 2, ThreadWorker) as pool:
        left = sweep(entries, pool)
    assert [e.run.path.name for e in left] == [e.run.path.name for e in opened(tmp_path / "sweep", trust=True)]
    alone = Run.create(tmp_path / "alone", kind, replace(kind.training, learning_rate=1e-3, seed=4))
    train(alone)
    run = opened(tmp_path / "sweep", trust=True)[3].run
    assert run.finished and (run.path / "policy.safetensors").is_file()
    for name, tensor in alone.checkpoint().policy.items():
        assert torch.equal(tensor, run.checkpoint().policy[name])
    assert len(run.metrics()) == len(alone.metrics()) == 3


def test_a_diverged_run_ends_nothing_else(kind: Any, tmp_path: Path) -> None:
    entries = create(tmp_path / "sweep", kind, settings(kind.options, kind.training, {"lr": ["1e-2", "1e-3"]}), [0])
    broken = entries[1].run
    weights = {k: torch.full_like(t, torch.nan) for k, t in broken.checkpoint().policy.items()}
    broken.save(replace(broken.checkpoint(), policy=weights))
    told: list[tuple[str, int]] = []
    left = sweep(entries, InProcess(GIVEN), lambda entry, left, where: told.append((entry.setting, left)))
    assert [e.setting for e in left] == ["learning_rate=1e-2"] and entries[0].run.finished
    assert told.count(("learning_rate=1e-3", 2)) == 1 and ("learning_rate=1e-2", 1) in told
    assert "not finite" in broken.found("diverged")["diverged"]
    assert score(entries[0].run, "loss") < score(broken, "loss") == float("inf")
    again = sweep(opened(tmp_path / "sweep", trust=True), InProcess(GIVEN))  # resumed: nothing is left to do
    assert [e.setting for e in again] == ["learning_rate=1e-2"]


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sweep"
    given = ["sweep", str(HOLD), "--set", "lr=1e-2,1e-3", "--seeds", "2", "--iterations", "8", "--out", str(out)]
    assert main(given) == 0
    assert "learning_rate=1e-3, seed 1: iteration 8/8, loss" in capsys.readouterr().out
    page = (out / "report.html").read_text()
    for text in ("Sweep of hold", "learning_rate=1e-2", "001-seed-1", "loss, mean over", "<svg"):
        assert text in page
    assert main(given) == 2
    assert "exists and is not an empty folder" in capsys.readouterr().err
    assert main(["sweep", str(HOLD), "--set", "lr"]) == 2
    assert "expected NAME=VALUE,VALUE" in capsys.readouterr().err
