"""Damaged inputs are answered or refused clearly: a sample of `make study-faults`, and the faults it has found."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch

import costate as cs
from benchmarks.faults.data_files import DATA
from benchmarks.faults.inputs import KINDS, broken_model, make_run, mesh_sources, try_case
from benchmarks.faults.samples import HAND, MJCF, URDF
from costate.collision.mesh.files import load_triangles
from costate.continuum.files.gcode import read_gcode
from costate.continuum.files.lsdyna import read_lsdyna
from costate.core.tensors import read_tensors, write_tensors
from costate.identify.tables import read_table
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
    outcomes = [try_case(kind, number, folder) for number in range(1_000_000, 1_000_200)]
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


@pytest.mark.parametrize("kind", DATA)
def test_the_undamaged_data_are_accepted(kind: str, tmp_path: Path) -> None:
    DATA[kind].make(tmp_path)
    assert DATA[kind].read(tmp_path, tmp_path) == ""


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


JUST = "line 2: "
HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "an open comment": ("path.gcode", b"G0 X0\n" + b"(" * 900_000, JUST + r"the comment '\({60}\.\.\.' has no end"),
    "a line without end": ("path.gcode", b"G0 X0\n" + b"9" * 1_100_000, JUST + "has 1,100,000 characters"),
    "digits of another script": (
        "path.gcode",
        "G0 X0\nG1 X\u0663 F60\n".encode(),
        JUST + "'X\u0663' is not understood",
    ),
    "letters that turn to others": ("path.gcode", "G0 X0\n\u017f1\n".encode(), JUST + "'\u017f1' is not understood"),
    "a number too large": ("path.gcode", b"G0 X0\nG1 X" + b"9" * 400 + b" F60\n", JUST + ".*is not a finite number"),
    "a feed too small": ("path.gcode", b"G0 X0\nG1 X1 F0." + b"0" * 320 + b"1\n", JUST + ".*is no feed"),
    "Latin-1": ("path.gcode", "G0 X0\n; \xe4\n".encode("latin-1"), JUST + "byte 0xe4 is not UTF-8; .*another encoding"),
    "UTF-16": ("log.csv", "t,q\n1,2\n".encode("utf-16"), "line 1: byte 0xff is not UTF-8; this is UTF-16"),
    "a long cell": ("log.csv", b"t,q_1\n0," + b"1" * 200_000, JUST + ".*cannot be read as CSV: field larger"),
    "an open quote": ("log.csv", b't,q_1\n0,"1\n1,2\n', JUST + ".*cannot be read as CSV: unexpected end"),
    "a node without number": ("part.k", b"*NODE\n     nan,0,0,0\n", JUST + "'     nan,0,0,0'; expected a node"),
    "a node number too large": ("part.k", b"*NODE\n1e30,0,0,0\n", JUST + "'1e30,0,0,0'; expected whole numbers"),
    "infinity for a node": ("part.k", b"*NODE\n1e400,0,0,0\n", JUST + ".*expected a node: number, x, y, z, finite"),
    "a place too far": (
        "part.k",
        b"*NODE\n1,1e200,0,0\n",
        JUST + r"node 1 is at .*; expected coordinates up to 1e\+30",
    ),
    "a card behind its columns": ("part.k", b"*NODE\n" + b" " * 70 + b"1\n", JUST + ".*; expected"),
    "a curve without end": ("part.k", b"*DEFINE_CURVE\n1e400\n", JUST + ".*; expected the number of a curve"),
    "JSON without end": ("world.json", b"[" * 100_000, "lists or objects are nested more than 100 deep"),
    "JSON too deep": ("world.json", b"[" * 300 + b"]" * 300, "lists or objects are nested more than 100 deep"),
}
"""What asks for too much -> file, content, error."""


@pytest.mark.parametrize("case", HOSTILE)
def test_what_asks_too_much_is_refused_at_once(case: str, tmp_path: Path) -> None:
    """Time is linear in the size of the file: these took minutes, or ended in errors without its name."""
    name, content, said = HOSTILE[case]
    path = tmp_path / name
    path.write_bytes(content)
    read = {".gcode": read_gcode, ".csv": read_table, ".k": read_lsdyna, ".json": cs.load_world}[path.suffix]
    begun = time.process_time()
    with pytest.raises(ValueError, match=said) as error:
        read(path)
    assert time.process_time() - begun < 5 and str(path) in str(error.value) and len(str(error.value)) < 1000


@pytest.mark.parametrize("file", ["run.json", "options.json", "policy.json", "metrics.jsonl"])
def test_a_run_nested_without_end_is_refused(file: str, folder: Path, tmp_path: Path) -> None:
    path = shutil.copytree(folder / "sound", tmp_path / "run")
    (path / file).write_bytes(b"[" * 100_000 + b"\n")
    with pytest.raises(ValueError, match=rf"{file} is damaged: .*nested more than 100 deep"):
        load_policy(path) if file == "policy.json" else Run.open(path).metrics()


def test_logs_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before memory is asked for: 40 MB of zeros in 40 KB, a claim of 8 TB, and text of 2 MB."""
    monkeypatch.setenv("COSTATE_MAX_LOG_MB", "8")
    monkeypatch.setenv("COSTATE_MAX_TEXT_MB", "1")
    zeros = np.zeros(5_000_000)
    np.savez_compressed(tmp_path / "bomb.npz", t=zeros)
    pyarrow.parquet.write_table(pyarrow.table({"t": zeros}), tmp_path / "bomb.parquet")
    (tmp_path / "large.csv").write_bytes(b"t,q\n" * 600_000)
    for name, limit in (("bomb.npz", "LOG"), ("bomb.parquet", "LOG"), ("large.csv", "TEXT")):
        with pytest.raises(ValueError, match=rf"{name}.*COSTATE_MAX_{limit}_MB"):
            read_table(tmp_path / name)
    monkeypatch.setenv("COSTATE_MAX_LOG_MB", "80")
    assert all(len(read_table(tmp_path / name)[0]["t"]) == len(zeros) for name in ("bomb.npz", "bomb.parquet"))


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
