"""Meshes are found where packages, relative paths and absolute paths lead, within the folders of the robot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from costate.model import ModelWarning, read_urdf
from costate.model.urdf.mesh_path import Places


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    """A folder of a robot deep below others, with meshes; and a store of other meshes."""
    robot = tmp_path / "a" / "b" / "c" / "ws" / "arm"
    for folder in (robot / "urdf", robot / "meshes", tmp_path / "store"):
        folder.mkdir(parents=True)
    for file in (robot / "meshes" / "m.stl", robot / "urdf" / "own.stl", tmp_path / "store" / "m.stl"):
        file.write_bytes(bytes(134))
    return robot


@pytest.mark.parametrize(
    "uri",
    [
        "../meshes/m.stl",
        "own.stl",
        "meshes/m.stl",
        "package://arm/meshes/m.stl",
        "package://arm/urdf/../meshes/m.stl",
        "file://../meshes/m.stl",
        "file://{robot}/meshes/m.stl",
        "{robot}/meshes/m.stl",
        "../../arm/meshes/m.stl",
    ],
)
def test_what_is_found(robot: Path, uri: str) -> None:
    found, why = Places(robot / "urdf" / "arm.urdf").find(uri.format(robot=robot))
    assert found in (str(robot / "meshes" / "m.stl"), str(robot / "urdf" / "own.stl")) and why == ""


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("{store}/m.stl", "outside"),
        ("file://{store}/m.stl", "outside"),
        ("../../../../../../store/m.stl", "outside"),
        ("package://arm/../../../../../store/m.stl", "outside"),
        ("/etc/hostname", "outside"),
        ("/dev/zero", "regular"),
        ("file:///dev/zero", "regular"),
        ("//host/share/m.stl", "network"),
        ("file:////host/share/m.stl", "network"),
        ("\\\\host\\share\\m.stl", "network"),
        ("http://host/m.stl", ""),
        ("file://host/share/m.stl", ""),
        ("nowhere.stl", ""),
        ("x" * 5000, ""),
    ],
)
def test_what_is_not_read(robot: Path, tmp_path: Path, uri: str, why: str) -> None:
    found, told = Places(robot / "urdf" / "arm.urdf").find(uri.format(store=tmp_path / "store"))
    assert found is None and why in told and bool(why) == bool(told)


def test_folders_that_are_given_are_read(robot: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    found, _ = Places(robot / "urdf" / "arm.urdf", [store]).find(f"{store}/m.stl")
    assert found == str(store / "m.stl")


def test_the_installed_file_may_be_a_link(robot: Path, tmp_path: Path) -> None:
    """As colcon installs them: the mesh lies beside the file that is linked to."""
    (robot / "urdf" / "arm.urdf").write_text("<robot/>")
    link = tmp_path / "install" / "arm.urdf"
    link.parent.mkdir()
    link.symlink_to(robot / "urdf" / "arm.urdf")
    assert Places(link).find("../meshes/m.stl") == (str(robot / "meshes" / "m.stl"), "")


def test_a_warning_says_why(robot: Path, tmp_path: Path) -> None:
    os.mkfifo(robot / "meshes" / "pipe.stl")
    path = robot / "urdf" / "arm.urdf"
    shape = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    text = "".join(shape.format(n) for n in ("../meshes/pipe.stl", f"{tmp_path}/store/m.stl"))
    path.write_text(f'<robot name="r"><link name="base">{text}</link></robot>')
    with pytest.warns(ModelWarning) as told:
        read_urdf(path)
    words = " ".join(str(w.message) for w in told)
    assert "each is not a regular file" in words and "each is outside of the folders of this robot" in words
