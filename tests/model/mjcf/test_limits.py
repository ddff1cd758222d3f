"""MJCF files that would hang MuJoCo's reader or fill memory are refused before it runs, by a limit that can be raised."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from costate.core.limits import LIMITS
from costate.model import ModelError, read_mjcf

pytest.importorskip("mujoco")
BODY = '<body name="b"><joint/><geom size="0.1"/></body>'
READ = "import sys\nfrom costate.model import read_mjcf\nread_mjcf(sys.argv[1])"


def mjcf(inside: str = "", world: str = BODY) -> str:
    return f"<mujoco>{inside}<worldbody>{world}</worldbody></mujoco>"


def refused(path: Path) -> str:
    """Return the last line of the error with which another process refuses a file, in a bounded time."""
    ended = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, timeout=600)
    assert ended.returncode == 1
    return ended.stderr.splitlines()[-1]


NESTED = '<replicate count="3000"><replicate count="3000"><geom size="0.1"/></replicate></replicate>'
EXCESSES = {
    "height field": (mjcf('<asset><hfield name="h" nrow="30000" ncol="30000" size="1 1 1 1"/></asset>'), "ASSET_MB"),
    "texture": (mjcf('<asset><texture name="t" builtin="flat" width="90000" height="90000"/></asset>'), "ASSET_MB"),
    "mesh": (mjcf('<asset><mesh name="m" builtin="supersphere" params="99999 1 1"/></asset>'), "ASSET_MB"),
    "numeric": (mjcf('<custom><numeric name="n" size="2000000000"/></custom>'), "ASSET_MB"),
    "replicate": (mjcf(world=BODY + NESTED), "COPIES"),
    "composite": (mjcf(world='<composite type="cable" count="9999999 1 1"/>'), "COPIES"),
    "flexcomp": (mjcf(world='<body name="a"><flexcomp name="f" count="900 900 900"/></body>'), "COPIES"),
    "endless": (mjcf(world='<replicate count="1e999"><geom size="1"/></replicate>'), "COPIES"),
    "njmax": (mjcf('<size njmax="2000000000"/>'), "ROWS"),
    "user numbers": (mjcf('<size nuser_body="2000000000"/>'), "ROWS"),
    "stack": (mjcf('<size nstack="2000000000"/>'), "MEMORY_MB"),
    "memory": (mjcf('<size memory="900G"/>'), "MEMORY_MB"),
}


@pytest.mark.parametrize(("text", "name"), EXCESSES.values(), ids=EXCESSES)
def test_what_asks_for_too_much_is_refused(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(text)
    with pytest.raises(ModelError, match=rf"robot.xml:1: .* exceed the limit of .* COSTATE_MAX_MJCF_{name} "):
        read_mjcf(path)
    (tmp_path / "outer.xml").write_text('<mujoco><include file="robot.xml"/></mujoco>')
    with pytest.raises(ModelError, match=rf"robot.xml:1: .* COSTATE_MAX_MJCF_{name} "):
        read_mjcf(tmp_path / "outer.xml")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_limits_can_be_raised_and_lowered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(mjcf(world='<replicate count="20" offset="1 0 0"><body><geom size="0.1"/></body></replicate>'))
    assert len(read_mjcf(path).links) == 21
    monkeypatch.setenv("COSTATE_MAX_MJCF_COPIES", "30")
    with pytest.raises(ModelError, match="57 elements made by <replicate>"):
        read_mjcf(path)


def test_copies_of_included_copies_are_counted(tmp_path: Path) -> None:
    inner = '<mujocoinclude><replicate count="3000"><geom size="0.1"/></replicate></mujocoinclude>'
    (tmp_path / "inner.xml").write_text(inner)
    path = tmp_path / "robot.xml"
    path.write_text(mjcf(world=BODY + '<replicate count="3000"><include file="inner.xml"/></replicate>'))
    with pytest.raises(ModelError, match=r"inner.xml:1: .* COSTATE_MAX_MJCF_COPIES"):
        read_mjcf(path)


@pytest.mark.parametrize("tag", ['<include file="{}"/>', '<asset><mesh name="m" file="{}"/></asset>'])
def test_names_that_are_too_long(tmp_path: Path, tag: str) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(mjcf(tag.format("x" * 5000 + ".xml")))
    with pytest.raises(ModelError, match="MuJoCo refuses this file"):
        read_mjcf(path)


def test_many_folders_and_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(mjcf("".join(f'<compiler meshdir="m{i}"/>' for i in range(200))))
    with pytest.raises(ModelError, match=r"201 folders of the meshes .* COSTATE_MAX_MJCF_FOLDERS"):
        read_mjcf(path)
    for i in range(5):
        (tmp_path / f"{i}.xml").write_text(f'<mujocoinclude><include file="{(i + 1) % 5}.xml"/></mujocoinclude>')
    path.write_text(mjcf('<include file="0.xml"/>'))
    with pytest.raises(ModelError, match="MuJoCo refuses this file"):  # a circle
        read_mjcf(path)
    monkeypatch.setenv("COSTATE_MAX_MJCF_FILES", "3")
    with pytest.raises(ModelError, match="4 files included by an MJCF file"):
        read_mjcf(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this system")
def test_fifos_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    os.mkfifo(tmp_path / "part.xml")
    os.mkfifo(tmp_path / "meshes" / "m.stl")
    path = tmp_path / "robot.xml"
    path.write_text(mjcf('<include file="part.xml"/>'))
    assert "<include> names" in refused(path) and "not a regular file" in refused(path)
    path.write_text(mjcf('<compiler meshdir="meshes"/><asset><mesh name="m" file="m.stl"/></asset>'))
    assert 'file="m.stl" is not a regular file' in refused(path)
    path.write_text(mjcf('<asset><hfield name="h" file="/dev/zero" size="1 1 1 1"/></asset>'))
    assert 'file="/dev/zero" is not a regular file' in refused(path)


def test_network_paths_and_large_pictures(tmp_path: Path) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(mjcf('<asset><mesh name="m" file="http://host/m.stl"/></asset>'))
    with pytest.raises(ModelError, match="is a network path"):
        read_mjcf(path)
    header = b"\x89PNG\r\n\x1a\n" + (13).to_bytes(4, "big") + b"IHDR" + 2 * (60_000).to_bytes(4, "big")
    (tmp_path / "t.png").write_bytes(header + bytes(20))
    path.write_text(mjcf('<asset><texture name="t" type="2d" file="t.png"/></asset>'))
    with pytest.raises(ModelError, match="10,300 MB of one asset"):
        read_mjcf(path)


def test_the_limits_in_the_docs_are_those_of_the_code() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `COSTATE_MAX_(\w+)` \| ([\d,]+) \|", text, re.MULTILINE)
    assert {name.lower(): int(number.replace(",", "")) for name, number in rows} == {
        name: limit.default for name, limit in LIMITS.items()
    }
