"""`costate export RUN`."""

from __future__ import annotations

from pathlib import Path

import pytest

from costate.cli.main import main
from costate.tasks.insertion import Insertion, InsertionOptions, Policy
from costate.tasks.insertion.training import ALONE
from costate.train.run import Run


@pytest.fixture(scope="module")
def run(policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Run:
    task = Insertion(InsertionOptions().unlimited())
    return Run.create(tmp_path_factory.mktemp("export") / "run", task, ALONE, policy.state_dict())


def test_both_files_are_written_and_what_they_take_is_said(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    assert main(["export", str(run.path), "--onnx"]) == 0
    shown = capsys.readouterr().out
    assert (run.path / "policy.onnx").stat().st_size > 10_000
    assert "static inline void costate_policy(const" in (run.path / "costate_policy.h").read_text()
    assert "0  position of shoulder_pan_joint [rad]" in shown and "5  velocity of wrist_3_joint [rad/s]" in shown


def test_the_header_alone_goes_into_another_folder(run: Run, tmp_path: Path) -> None:
    assert main(["export", str(run.path), "--no-onnx", "--out", str(tmp_path / "there")]) == 0
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["costate_policy.h"]


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--no-onnx", "--no-header"], "nothing to export"), ([], "not a folder")]
)
def test_mistakes_are_told_in_a_line(
    arguments: list[str], said: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run.path if arguments else tmp_path / "missing"
    assert main(["export", str(folder), *arguments]) == 2
    assert said in capsys.readouterr().err
