"""Tasks are found by name or in a file, and a run folder of a file's task stands on its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from costate.cli.main import main
from costate.core.files import write_json
from costate.core.tensors import write_tensors
from costate.train.registry import TASKS, find_task
from costate.train.run import Run, read_checkpoint
from costate.train.shards.sweep import opened
from costate.train.trainable import Trainable

EXAMPLE = Path(__file__).parents[2] / "examples" / "12_own_task.py"
QUICK = ["--iterations", "4", "--batch", "8", "--interval", "2", "--watch-interval", "0", "--no-tensorboard"]


@pytest.mark.parametrize("name", TASKS)
def test_built_in_tasks_are_found_and_complete(name: str) -> None:
    task = find_task(name)
    assert issubclass(task, Trainable) and task.name == name and task.summary
    made = task()
    drawn = made.draw(3, torch.Generator().manual_seed(0))
    seen = made.observe(drawn.state, 0, drawn)
    assert seen.shape == (3, len(made.inputs)) and len(made.outputs) == made.world.nu
    assert float(seen.abs().max()) < 10  # scaled to order one


FILES = {
    "empty": ("", "no class that extends"),
    "incomplete": (
        "from costate.train import Trainable\nclass Half(Trainable):\n    name = 'half'\n",
        "Half lacks draw, judge, loss, observe",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_without_a_task_are_refused(kind: str, tmp_path: Path) -> None:
    text, said = FILES[kind]
    path = tmp_path / "task.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        find_task(path)


def test_of_several_tasks_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.py"
    path.write_text(EXAMPLE.read_text() + "\n\nclass Other(StandUp):\n    name = 'other'\n")
    with pytest.raises(ValueError, match=r"several tasks.*:StandUp or .*:Other"):
        find_task(path)
    assert find_task(f"{path}:Other").name == "other"


def test_unknown_names_are_met_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'reach'"):
        find_task("reech")
    with pytest.raises(ValueError, match="not a file"):
        find_task("nowhere.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a task in a file that is gone when the run is opened."""
    place = tmp_path_factory.mktemp("own")
    source = Path(shutil.copy(EXAMPLE, place / "mine.py"))
    assert main(["train", str(source), "--out", str(place / "run"), "--task.strength", "9.0", *QUICK]) == 0
    source.unlink()
    return place / "run"


def test_a_run_of_a_file_stands_on_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.open(folder, trust=True)
    assert run.task.name == "stand_up" and run.task.options.strength == 9.0 and run.options.batch == 8
    assert main(["evaluate", str(folder), "--episodes", "5", "--threads", "1", "--trust"]) == 0
    assert "error: mean" in capsys.readouterr().out
    assert main(["report", str(folder), "--episodes", "5", "--trust"]) == 0
    assert "A pendulum with a motor stands up." in (folder / "report.html").read_text()
    assert main(["export", str(folder), "--no-onnx", "--trust"]) == 0
    assert "3 numbers" in capsys.readouterr().out


COMMANDS = (
    ["evaluate"],
    ["report"],
    ["export"],
    ["play"],
    ["robustness"],
    ["transfer"],
    ["train", "--resume"],
)
"""Commands that open a run folder."""


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_the_program_in_a_folder_is_not_run_untold(
    command: list[str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, mark = Path(shutil.copytree(folder, tmp_path / "run")), tmp_path / "ran"
    (copy / "task.py").write_text(f"open({str(mark)!r}, 'w')\n")
    assert main([*command, str(copy)]) == 2
    assert re.search(r"task\.py is a program.*--trust", capsys.readouterr().err)
    assert not mark.exists()


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
@pytest.mark.parametrize("place", ["{}", "{}:Task", "../mine.py", "costate.cli.main:main", "os:system"])
def test_a_name_in_run_json_leads_to_no_file(
    command: list[str], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if it is trusted: a folder without task.py is of a built-in task."""
    run, mark = tmp_path / "run", tmp_path / "ran"
    run.mkdir()
    monkeypatch.chdir(run)
    (tmp_path / "mine.py").write_text(f"open({str(mark)!r}, 'w')\n")
    write_json(run / "run.json", {"format": 1, "task": place.format(tmp_path / "mine.py")})
    write_json(run / "options.json", {})
    write_tensors(run / "checkpoint.safetensors", {})
    assert main([*command, str(run), "--trust"]) == 2
    assert "unknown task" in capsys.readouterr().err
    assert not mark.exists()


def test_weights_alone_need_no_trust(folder: Path) -> None:
    """`train --start` reads the checkpoint, and nothing of the task."""
    assert read_checkpoint(folder).policy.keys() == Run.open(folder, trust=True).checkpoint().policy.keys()


def test_a_sweep_names_folders_of_its_own_only(folder: Path, tmp_path: Path) -> None:
    rows = [{"run": "../../elsewhere", "setting": "", "seed": 0}]
    write_json(tmp_path / "sweep.json", {"task": "stand_up", "runs": rows})
    with pytest.raises(ValueError, match=r"sweep\.json is damaged: .*elsewhere"):
        opened(tmp_path, trust=True)


@pytest.mark.parametrize(("command", "said"), [("robustness", "has no cases"), ("transfer", "no other engine")])
def test_what_a_task_does_not_offer_is_said(
    command: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(folder), "--trust"]) == 2
    assert said in capsys.readouterr().err


def test_a_training_goes_on_with_its_own_task_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "reach", "--resume", str(folder), "--trust"]) == 2
    assert "is a training of 'stand_up'" in capsys.readouterr().err
    assert main(["train", "--resume", str(folder), "--no-tensorboard", "--trust"]) == 0


def test_a_training_begins_with_the_policy_of_another_run(folder: Path, tmp_path: Path) -> None:
    still = ["--iterations", "1", "--learning-rate", "1e-12", *QUICK[2:]]
    given = [str(EXAMPLE), "--start", str(folder)]
    assert main(["train", *given, "--out", str(tmp_path / "run"), *still]) == 0
    before, after = read_checkpoint(folder).policy, read_checkpoint(tmp_path / "run").policy
    assert all(torch.allclose(t, after[name], rtol=0, atol=1e-6) for name, t in before.items())
    assert main(["train", *given, "--resume", str(folder), "--trust"]) == 2


def test_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown and find_task(name).summary == row.summary in shown for name, row in TASKS.items())


def test_no_package_but_tasks_and_the_register_knows_a_task_by_name() -> None:
    """A second task must cost nothing anywhere else."""
    package = Path(__file__).parents[2] / "src" / "costate"
    tables = ("train/names.py", "train/solve/recipes.py", "cli/solve.py", "envs/registry.py")
    known = {package / table for table in tables}
    files = [p for p in package.rglob("*.py") if package / "tasks" not in p.parents and p not in known]
    naming = [str(p.relative_to(package)) for p in files if "insertion" in p.read_text().lower()]
    assert naming == []
