"""Files named *.xacro are expanded by the package xacro; nothing of other files is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from xml.dom import minidom

import pytest

from costate.model import ModelError, load_model

LINK = '<link name="{}"><inertial><mass value="{}"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>'
FILE = f"""<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="1.5"/>
  {LINK.format("a", "${2 * mass}")}
</robot>"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(FILE)
    return path


def test_xacro_expands(path: Path) -> None:
    pytest.importorskip("xacro")
    assert load_model(path).total_mass == 3.0


def test_what_xacro_returns_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package: it gets the path, and its document is the robot, with messages that name the file."""
    asked = []

    def process_file(name: str) -> minidom.Document:
        asked.append(name)
        return minidom.parseString(f'<robot name="r">{LINK.format("ä", masses.pop(0))}</robot>')

    masses = ["3", "-3"]
    monkeypatch.setitem(sys.modules, "xacro", SimpleNamespace(process_file=process_file))
    model = load_model(path)
    assert asked == [str(path)] and model.links[0].name == "ä" and model.total_mass == 3.0 and model.source == str(path)
    with pytest.raises(ModelError, match=r"arm\.urdf\.xacro:1: .*mass -3"):
        load_model(path)


def test_without_xacro_the_message_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ModelError, match=r"arm\.urdf\.xacro: .*needs the package xacro: .*\[xacro\]"):
        load_model(path)


def test_faults_in_expressions_are_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def process_file(name: str) -> None:
        raise NameError("name 'length' is not defined")

    monkeypatch.setitem(sys.modules, "xacro", SimpleNamespace(process_file=process_file))
    with pytest.raises(ModelError, match=r"cannot expand this file: name 'length' is not defined"):
        load_model(path)


def test_files_with_other_names_are_data(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def process_file(name: str) -> None:
        raise AssertionError("nothing of a .urdf file may be evaluated")

    monkeypatch.setitem(sys.modules, "xacro", SimpleNamespace(process_file=process_file))
    plain = path.rename(path.with_name("arm.urdf"))
    with pytest.raises(ModelError, match=r"arm\.urdf:2: this is a xacro file; run xacro on it"):
        load_model(plain)
