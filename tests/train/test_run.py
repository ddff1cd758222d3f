"""Run folders: what they hold, that they are whole or not there, and how they are refused."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.disk import files_of_at_most

from costate.cli.runs import train as command
from costate.core.files import write_json
from costate.core.tensors import threads as torch_threads
from costate.tasks.insertion import Disturbances, Insertion, InsertionOptions, InsertionTraining
from costate.train import run as run_module
from costate.train.run import Checkpoint, Run

TASK = Insertion(InsertionOptions(moving=True, center=(0.45, 0.12)))
OPTIONS = InsertionTraining(disturbances=Disturbances(payload=0.2, latency=1), hidden=8, seed=3)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Run.create(tmp_path_factory.mktemp("runs") / "run", TASK, OPTIONS).path


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Run:
    """A new run folder, which a test may damage."""
    return Run.open(shutil.copytree(template, tmp_path / "run"))


def checkpoint(iteration: int, hidden: int = 8) -> Checkpoint:
    """Of arbitrary numbers."""
    g = torch.Generator().manual_seed(iteration)
    policy = {"inner.weight": torch.rand(hidden, 19, generator=g), "inner.bias": torch.rand(hidden, generator=g)}
    moments = {n: {"exp_avg": t + 1, "exp_avg_sq": t * t, "step": torch.tensor(7.0)} for n, t in policy.items()}
    return Checkpoint(iteration, policy, moments, 12, 3.5, 1000)


def test_options_come_back(folder: Run) -> None:
    again = Run.open(folder.path)
    assert again.options == OPTIONS
    assert again.task.options.center == (0.45, 0.12)
    assert again.task.options.moving
    assert (again.evaluation, again.found("horizon"), again.metrics(), again.finished) == (None, None, [], False)


def test_origin_is_noted(folder: Run) -> None:
    assert folder.note["seed"] == 3
    assert folder.note["versions"]["torch"] == torch.__version__
    assert folder.differences() == []
    write_json(folder.path / "run.json", folder.note | {"cpu": "abacus"})
    assert len(folder.differences()) == 1 and "was abacus" in folder.differences()[0]


def test_initial_weights_follow_the_seed(folder: Run, tmp_path: Path) -> None:
    first, same = folder.policy, Run.create(tmp_path / "same", TASK, OPTIONS).policy
    other = Run.create(tmp_path / "other", TASK, replace(OPTIONS, seed=4)).policy
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), same.parameters(), strict=True))
    assert not torch.equal(first.get_parameter("inner.weight"), other.get_parameter("inner.weight"))


@pytest.mark.parametrize(("threads", "rubbish"), [(1, 0), (1, 7), (2, 0)])
def test_what_a_policy_begins_with_depends_on_its_seed_alone(folder: Run, tmp_path: Path, threads: int, rubbish: int):
    # The numbers of a guide are fitted. A solver must not read what memory held before; more threads add in another order.
    with torch_threads(threads):
        freed = [torch.full((84,), rubbish, dtype=torch.int32) for _ in range(64)]
        del freed
        again = Run.create(tmp_path / "again", TASK, OPTIONS).checkpoint().policy
    first = folder.checkpoint().policy
    assert [name for name in first if not torch.equal(first[name], again[name])] == []


def test_checkpoints_come_back_bit_for_bit(folder: Run) -> None:
    written = checkpoint(5)
    folder.save(written)
    found = folder.checkpoint()
    assert (found.iteration, found.metrics_bytes, found.seconds, found.control_steps) == (5, 12, 3.5, 1000)
    assert found.policy.keys() == written.policy.keys() and found.moments.keys() == written.moments.keys()
    for name, tensor in written.policy.items():
        assert torch.equal(found.policy[name], tensor)
        assert all(torch.equal(found.moments[name][k], t) for k, t in written.moments[name].items())


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_full_disk_leaves_the_last_checkpoint(folder: Run) -> None:
    folder.save(checkpoint(5))
    before, names = (folder.path / "checkpoint.safetensors").read_bytes(), sorted(os.listdir(folder.path))
    with files_of_at_most(1000), pytest.raises(OSError, match=r"cannot write .*checkpoint\.safetensors.* unchanged"):
        folder.save(checkpoint(6, hidden=100))
    assert (folder.path / "checkpoint.safetensors").read_bytes() == before
    assert sorted(os.listdir(folder.path)) == names
    folder.save(checkpoint(6))
    assert folder.checkpoint().iteration == 6


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    with files_of_at_most(500), pytest.raises(OSError, match="nothing was written"):
        Run.create(tmp_path / "run", TASK, OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_is_being_written_is_not_read(folder: Run) -> None:
    (folder.path / "metrics.jsonl").write_text('{"iteration": 1}\n{"iteration": 2}\n{"itera')
    assert folder.metrics() == [{"iteration": 1}, {"iteration": 2}]


class Impossible(Insertion):
    """A task that its arm is too slow for."""

    options = InsertionOptions(horizon=5)


def test_an_impossible_task_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="longer horizon"):
        Run.create(tmp_path / "run", Impossible)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["file", "files"])
def test_what_is_there_is_not_overwritten(what: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    if what == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="not an empty folder"):
        Run.create(path, TASK, OPTIONS)


def test_two_trainings_that_start_at_the_same_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen that the folder was free. One has it; the other says so in words, and leaves it alone."""
    path, original = tmp_path / "run", run_module._origin

    def rival(options: InsertionTraining) -> dict:
        monkeypatch.setattr(run_module, "_origin", original)
        Run.create(path, TASK, replace(OPTIONS, seed=99))
        return original(options)

    monkeypatch.setattr(run_module, "_origin", rival)
    with pytest.raises(ValueError, match=r"run was made by somebody else at this moment.*--resume"):
        Run.create(path, TASK, OPTIONS)
    assert Run.open(path).options.seed == 99
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_takes_the_next_free_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trainings without --out at the same moment: each has a folder of its own."""
    monkeypatch.chdir(tmp_path)
    original = run_module._origin

    def rival(options: InsertionTraining) -> dict:
        monkeypatch.setattr(run_module, "_origin", original)
        Run.create("out/insertion", TASK, OPTIONS)
        return original(options)

    monkeypatch.setattr(run_module, "_origin", rival)
    made = command._created(replace(command.options_of(Insertion, "insertion"), hidden=8), Insertion)
    assert str(made.path) == "out/insertion-2"


def _edit(path: Path, change: dict) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


DAMAGE = {
    "nothing there": (lambda path: os.rename(path, f"{path}-away"), "is not a folder"),
    "foreign folder": (lambda path: (path / "run.json").unlink(), "no run.json"),
    "other format": (lambda path: _edit(path / "run.json", {"format": 99}), "not one of this version"),
    "no options": (lambda path: (path / "options.json").unlink(), "has no options.json"),
    "torn options": (lambda path: os.truncate(path / "options.json", 30), "options.json is damaged"),
    "unknown option": (lambda path: _edit(path / "options.json", {"turbo": 1}), "no field 'turbo'"),
    "iterations of ages": (
        lambda path: _edit(path / "options.json", {"iterations": 10**12}),
        "options.json: iterations is 1000000000000; it must be at most",
    ),
    "episodes without end": (
        lambda path: _edit(path / "options.json", {"watch_episodes": 10**9}),
        "watch_episodes is 1000000000; it must be at most",
    ),
    "a batch of all memory": (
        lambda path: _edit(path / "options.json", {"contact_batch": 10**9}),
        "contact_batch is 1000000000; it must be at most",
    ),
    "interval below none": (lambda path: _edit(path / "options.json", {"watch_interval": -5}), "watch_interval is -5"),
    "bad option": (lambda path: _edit(path / "options.json", {"batch": 0}), "batch is 0"),
    "no checkpoint": (lambda path: (path / "checkpoint.safetensors").unlink(), "has no checkpoint"),
    "torn checkpoint": (lambda path: os.truncate(path / "checkpoint.safetensors", 400), "is damaged"),
    "other network": (lambda path: _edit(path / "options.json", {"hidden": 9}), "does not fit"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named(kind: str, folder: Run) -> None:
    damage, message = DAMAGE[kind]
    damage(folder.path)
    with pytest.raises(ValueError, match=message):
        Run.open(folder.path).policy  # noqa: B018  (reads the checkpoint)
