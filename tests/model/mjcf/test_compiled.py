"""MJCF files whose cost no check foresees are compiled in a process of their own, within limits; others in this one."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.model.mjcf.test_limits import BODY, mjcf

from costate.model import ModelError, read_mjcf
from costate.model.document import parse
from costate.model.errors import Assumptions
from costate.model.mjcf import compiled
from costate.model.mjcf.compiled import ELEMENTS, is_plain
from costate.model.mjcf.limits import check_mjcf

mujoco = pytest.importorskip("mujoco")
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system bounds neither time nor memory")

LENGTHS = '<compiler><lengthrange mode="all" inttotal="1e9" timestep="1e-9" interval="1e8"/></compiler>'
MUSCLE = '<actuator><muscle joint="j"/></actuator>'
HINGE = '<body name="b"><joint name="j" range="-1 1" limited="true"/><geom size="0.1"/></body>'
FREE = '<geom type="plane" size="1 1 1"/>' + '<body pos="0 0 .05"><freejoint/><geom size="0.1"/></body>' * 300
ATTACH = '<replicate count="1000" offset="1 0 0"><attach model="x" body="b" prefix="p"/></replicate>'
MODEL = '<asset><model name="x" file="inner.xml"/></asset>'


def written(folder: Path, text: str, name: str = "robot.xml") -> Path:
    (folder / name).write_text(text)
    return folder / name


@linux
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (mjcf(LENGTHS + MUSCLE, HINGE), "SECONDS"),  # simulates 10^18 steps
        (mjcf(MODEL, ATTACH), "SECONDS"),  # half a million bodies
        (mjcf('<size njmax="100000" nconmax="100000"/>', FREE), "MEMORY_MB"),
    ],
    ids=["lengths", "attach", "rows"],
)
def test_what_hangs_or_fills_memory_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str
) -> None:
    inside = '<body name="b">' + '<body><joint/><geom size="0.1"/></body>' * 500 + "</body>"
    written(tmp_path, mjcf(world=inside), "inner.xml")
    monkeypatch.setenv("COSTATE_MAX_READ_SECONDS", "1")
    monkeypatch.setenv("COSTATE_MAX_READ_MEMORY_MB", "500")
    with pytest.raises(ModelError, match=rf"robot.xml: the limit of .* was met; .* COSTATE_MAX_READ_{name} "):
        read_mjcf(written(tmp_path, text))


def test_copies_are_counted_after_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(
        tmp_path,
        mjcf(world='<body name="b">' + '<body><joint/><geom size="0.1"/></body>' * 10 + "</body>"),
        "inner.xml",
    )
    path = written(tmp_path, mjcf(MODEL, ATTACH.replace("1000", "5")))
    assert len(read_mjcf(path).links) == 1 + 5 * 11
    monkeypatch.setenv("COSTATE_MAX_MJCF_COPIES", "100")
    with pytest.raises(ModelError, match=r"elements made by .* exceed the limit of 100; .* COSTATE_MAX_MJCF_COPIES"):
        read_mjcf(path)


PLAIN = {
    "a body": mjcf(world=BODY),
    "much": mjcf('<size njmax="500" nstack="100000"/><option iterations="50"/><sensor><clock/></sensor>'),
    "a texture": mjcf('<asset><texture name="t" builtin="flat" width="512" height="512"/></asset>'),
}
NOT_PLAIN = {
    "copies": mjcf(world='<replicate count="2" offset="1 0 0"><body><geom size="0.1"/></body></replicate>'),
    "a plugin": mjcf('<extension><plugin plugin="mujoco.pid"/></extension>'),
    "a muscle": mjcf(MUSCLE, HINGE),
    "a muscle in general": mjcf('<actuator><general joint="j" gaintype="muscle"/></actuator>', HINGE),
    "many elements": mjcf(world=BODY + '<geom size="0.1"/>' * ELEMENTS),
    "rows": mjcf('<size njmax="9000"/>'),
    "a large texture": mjcf('<asset><texture name="t" builtin="flat" width="3000" height="3000"/></asset>'),
    "a large mesh": mjcf('<asset><mesh name="m" file="m.stl"/></asset>'),
    "an unknown element": mjcf("<novelty/>"),
}


@pytest.mark.parametrize(
    ("text", "plain"), [(t, True) for t in PLAIN.values()] + [(t, False) for t in NOT_PLAIN.values()]
)
def test_which_files_are_plain(tmp_path: Path, text: str, plain: bool) -> None:
    with (tmp_path / "m.stl").open("wb") as file:
        file.truncate(3 * 2**20)
    path = written(tmp_path, text)
    assert is_plain(check_mjcf(parse(path), path)) is plain


def test_both_ways_give_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrays of MuJoCo's model are the same, bit for bit, and so are its warnings."""
    old = '<compiler settotalmass="3"/><default><joint damping="0.1"/></default>'
    path = written(tmp_path, mjcf(old, HINGE.replace("0.1", "0.3") + "<geom size='.1'/>"))
    content = check_mjcf(parse(path), path)
    with warnings.catch_warnings(record=True) as here:
        warnings.simplefilter("always")
        a = compiled.compile_mjcf(path, content, "refuse", Assumptions(""))
    monkeypatch.setattr(compiled, "is_plain", lambda _: False)
    with warnings.catch_warnings(record=True) as apart:
        warnings.simplefilter("always")
        b = compiled.compile_mjcf(path, content, "refuse", Assumptions(""))
    assert [str(w.message) for w in here] == [str(w.message) for w in apart] != []
    names = [n for n in dir(a) if isinstance(getattr(a, n, None), np.ndarray)]
    assert len(names) > 200
    for name in names:
        assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True), name
    written(tmp_path, mjcf(world="<body><joint type='none'/></body>"))
    with pytest.raises(ModelError, match=r"robot.xml: MuJoCo refuses this file: .*invalid keyword.*"):
        read_mjcf(path)


def test_files_outside_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the file's own tree and of meshdir are read; an include from elsewhere is not."""
    trimesh = pytest.importorskip("trimesh")
    robot, store = tmp_path / "a" / "b" / "c" / "d" / "robot", tmp_path / "store"
    for folder in (robot, store, robot.parent / "shared"):
        folder.mkdir(parents=True)
    trimesh.creation.box().export(store / "m.stl")
    written(robot.parent / "shared", "<mujocoinclude><option timestep='0.001'/></mujocoinclude>", "part.xml")
    written(store, "<mujocoinclude><option timestep='0.001'/></mujocoinclude>", "part.xml")
    world = BODY + '<geom type="mesh" mesh="m"/>'
    mesh = '<asset><mesh name="m" file="{}"/></asset>'
    assert read_mjcf(written(robot, mjcf('<include file="../shared/part.xml"/>'))).nv == 1
    assert read_mjcf(written(robot, mjcf(f'<compiler meshdir="{store}"/>' + mesh.format("m.stl"), world))).nv == 1
    outside = "is outside of the folders of this robot; .* COSTATE_ROBOT_DIRS"
    for inside in (f'<include file="{store}/part.xml"/>', '<include file="../../../../../store/part.xml"/>'):
        with pytest.raises(ModelError, match=rf"<include> names .*, which {outside}"):
            read_mjcf(written(robot, mjcf(inside)))
    with pytest.raises(ModelError, match=rf"file=.* {outside}"):
        read_mjcf(written(robot, mjcf(mesh.format(store / "m.stl"), world)))
    with pytest.raises(ModelError, match=r"meshdir=.* is a network path"):
        read_mjcf(written(robot, mjcf('<compiler meshdir="//host/share"/>')))
    monkeypatch.setenv("COSTATE_ROBOT_DIRS", str(store))
    assert read_mjcf(written(robot, mjcf(mesh.format(store / "m.stl"), world))).nv == 1
