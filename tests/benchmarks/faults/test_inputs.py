"""Damaged inputs are answered or refused clearly: a sample of `make study-faults`, and the faults it has found."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.faults.inputs import KINDS, broken_model, make_run, mesh_sources, try_case
from benchmarks.faults.samples import HAND, MJCF, URDF
from costate.collision.mesh.files import load_triangles
from costate.core.tensors import read_tensors, write_tensors
from costate.model import load_model
from costate.model.errors import ModelError
from costate.report import Report
from costate.train.controller import load_policy
from costate.train.run import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults")
    make_run(path / "sound")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_inputs_are_answered_or_refused(kind: str, folder: Path) -> None:
    outcomes = [try_case(kind, number, folder) for number in range(1_000_000, 1_000_050)]
    assert [o for o in outcomes if not o.sound] == []
    assert {o.result for o in outcomes} == {"answer", "error"}  # the sample has both


@pytest.mark.filterwarnings("ignore::UserWarning")  # a mesh that is not there; what is left out
@pytest.mark.parametrize(
    ("suffix", "text"), [("urdf", URDF), ("xml", MJCF), ("xml", HAND)], ids=["urdf", "mjcf", "hand"]
)
def test_the_undamaged_files_are_accepted(suffix: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"robot.{suffix}"
    path.write_text(text)
    model = load_model(path)
    assert model.nv > 1 and broken_model(model) == ""


def test_the_undamaged_meshes_are_accepted(tmp_path: Path) -> None:
    for suffix, data in mesh_sources():
        path = tmp_path / f"mesh.{suffix}"
        path.write_bytes(data)
        vertices, faces = load_triangles.__wrapped__(path)
        assert len(vertices) == 8 and len(faces) == 12, suffix


@pytest.mark.parametrize("corner", ["0 0 nan", "0 0 inf", "0 0", "0 0 x"])
def test_meshes_with_impossible_corners_are_refused(corner: str, tmp_path: Path) -> None:
    path = tmp_path / "mesh.obj"
    others = ["1 0", "0 1"] if corner == "0 0" else ["1 0 0", "0 1 0"]
    path.write_text("".join(f"v {c}\n" for c in (corner, *others)) + "f 1 2 3\n")
    with pytest.raises(ValueError, match=r"mesh\.obj is damaged"):
        load_triangles(path)


def test_a_changed_bit_of_a_weight_is_noticed(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    write_tensors(path, {"a": torch.arange(5.0), "b": torch.tensor(2.0)}, {"iteration": 3})
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not what was written"):
        read_tensors(path)
    controller = load_policy(folder / "sound")
    assert controller.action(np.zeros(18), 0).shape == (6,)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("options.json", '"interval": 25', '"interval": Infinity', "InsertionTraining.interval is inf; expected int"),
        ("options.json", '"batch": 8', '"batch": {}', "InsertionTraining.batch is {}; expected int"),
        ("options.json", '"hidden": 8', '"hidden": 1000000000000', "hidden is 1000000000000; it must be at most"),
        ("metrics.jsonl", '"loss": 1.0', '"loss": 1.0.0', "metrics.jsonl is damaged"),
        ("run.json", '"versions"', '"conversions"', "has no versions"),
    ],
)
def test_run_folders_with_wrong_values(
    name: str, old: str, new: str, message: str, folder: Path, tmp_path: Path
) -> None:

    path = shutil.copytree(folder / "sound", tmp_path / "run")
    text = (path / name).read_text()
    assert old in text
    (path / name).write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        run = Run.open(path)
        run.metrics()
        run.differences()
        run.policy  # noqa: B018


def test_mjcf_with_nan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(MJCF.replace('pos="-0.2 0 0"', 'pos="-0.2 0 nan"'))
    with pytest.raises(ModelError, match="body_pos is not finite"):
        load_model(path)


def test_numbers_in_other_scripts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(URDF.replace('value="2"', 'value="\u0663"'), encoding="utf-8")
    with pytest.raises(ModelError, match="not a finite number"):
        load_model(path)


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Report("first").save(tmp_path / "report.html")
    before = path.read_text()

    def full(self: Path, text: str, **_: object) -> int:
        with open(self, "w") as file:
            file.write(text[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="the one there is unchanged"):
        Report("second").save(path)
    assert path.read_text() == before and list(tmp_path.iterdir()) == [path]
