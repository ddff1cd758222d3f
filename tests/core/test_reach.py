"""Files that robot files may lead to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from costate.core.reach import is_network, problem, tree_of


def touched(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("data")
    return path


def test_the_tree_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = touched(tmp_path / "home" / "me" / "a" / "b" / "c" / "d" / "robot.urdf")
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "me"))
    assert tree_of(file) == tmp_path / "home" / "me" / "a"
    assert tree_of(file.parents[3] / "robot.urdf") == file.parents[3]  # never the home, nor what holds it
    assert tree_of(file.parents[4] / "robot.urdf") == tmp_path / "home" / "me"  # but for a file that is there
    touched(file.parents[1] / "package.xml")
    assert tree_of(file) == file.parents[1]


def test_inside_and_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "robot"
    mesh, other = touched(root / "meshes" / "a.stl"), touched(tmp_path / "other" / "a.stl")
    assert problem(mesh, [root]) is None
    assert problem(root / "urdf" / ".." / "meshes" / "a.stl", [root]) is None
    for path in (other, root / ".." / "other" / "a.stl", Path("/etc/passwd")):
        assert "is outside of the folders of this robot" in (problem(path, [root]) or "")
    monkeypatch.setenv("COSTATE_ROBOT_DIRS", f"{tmp_path / 'else'}{os.pathsep}{other.parent}")
    assert problem(other, [root]) is None
    monkeypatch.delenv("COSTATE_ROBOT_DIRS")
    touched(tmp_path / "other" / "package.xml")  # now it is a package
    assert problem(other, [root]) is None


def test_links_of_the_user_lead_where_they_lead(tmp_path: Path) -> None:
    other = touched(tmp_path / "store" / "a.stl")
    (tmp_path / "robot").mkdir()
    (tmp_path / "robot" / "meshes").symlink_to(other.parent)
    assert problem(tmp_path / "robot" / "meshes" / "a.stl", [tmp_path / "robot"]) is None


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc on this system")
def test_files_of_the_system_are_no_data(tmp_path: Path) -> None:
    (tmp_path / "a.stl").symlink_to("/proc/self/maps")
    (tmp_path / "b.stl").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "c.stl")
    assert "is in /proc" in (problem(tmp_path / "a.stl", [tmp_path]) or "")
    for name in ("b.stl", "c.stl", ""):
        assert "not a regular file" in (problem(tmp_path / name, [tmp_path]) or "")


@pytest.mark.parametrize(
    "name", ["//host/a.stl", r"\\host\share\a.stl", "http://host/a", "ftp://host/a", "smb://host/a"]
)
def test_network_paths(name: str) -> None:
    assert is_network(name)


@pytest.mark.parametrize("name", ["a.stl", "../a.stl", "/a/b", "package://a/b", "file:///a/b", "C:/a", "a//b"])
def test_paths_of_this_machine(name: str) -> None:
    assert not is_network(name)
