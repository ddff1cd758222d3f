"""Every fault gives one error that names the file, the line and the element."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.model.urdf.test_details import INERTIAL, LIMIT, joint, robot

from costate.model import ModelError, ModelWarning, load_model, read_urdf
from costate.model.document import MAX_BYTES


def inertial(mass: str = "1", ixx: str = "1", extra: str = "") -> str:
    inside = f'<inertial><mass value="{mass}"/><inertia ixx="{ixx}" iyy="1" izz="1" {extra}/></inertial>'
    return f'<robot name="r">\n<link name="heavy">\n{inside}</link></robot>'


def shape(form: str) -> str:
    return f'<robot name="r"><link name="a"><collision><geometry>{form}</geometry></collision></link></robot>'


CYCLE = robot("a", "b", "c", joints=joint("j1", "fixed", "b", "c", "") + joint("j2", "fixed", "c", "b", ""))
MIMIC = LIMIT + '<mimic joint="{}"/>'

FAULTS = {
    "missing link": (
        robot("a", joints=joint("elbow", "revolute", "a", "arm")),
        r":4: <child> of <joint 'elbow'>.*'arm'",
    ),
    "missing parent": (robot("a", joints=joint("elbow", "revolute", "x", "a")), r"<parent> of <joint 'elbow'>.*'x'"),
    "no parent element": (
        robot("a", "b", joints='<joint name="elbow" type="fixed"><child link="b"/></joint>'),
        "<joint 'elbow'> has no <parent>",
    ),
    "cycle": (CYCLE, "cycle through the links 'b', 'c'"),
    "cycle without a root": (
        robot("a", "b", joints=joint("j1", "fixed", "a", "b", "") + joint("j2", "fixed", "b", "a", "")),
        "cycle through the links 'a', 'b'",
    ),
    "link moved by itself": (robot("a", "b", joints=joint("j", "fixed", "b", "b", "")), "cycle through the links 'b'"),
    "two roots": (robot("a", "b"), "2 links have no parent .'a', 'b'."),
    "two parents": (
        robot("a", "b", "c", joints=joint("j1", "fixed", "a", "c", "") + joint("j2", "fixed", "b", "c", "")),
        "'c' is the child of two joints, 'j1' and 'j2'",
    ),
    "no links": ('<robot name="r"/>', "no link"),
    "duplicate link": (robot("a", "a"), r":4: <link 'a'> has the name of an earlier one"),
    "duplicate joint": (
        robot("a", "b", "c", joints=joint("j", "fixed", "a", "b", "") + joint("j", "fixed", "b", "c", "")),
        r":7: <joint 'j'> has the name",
    ),
    "unnamed link": ('<robot name="r"><link/></robot>', '<link> has no attribute "name"'),
    "unknown joint type": (robot("a", "b", joints=joint("j", "screw", "a", "b")), "<joint 'j'>.*screw.*prismatic"),
    "zero axis": (
        robot("a", "b", joints=joint("j", "revolute", "a", "b", LIMIT + '<axis xyz="0 0 0"/>')),
        "<axis> of.*'j'.*zero",
    ),
    "negative mass": (inertial(mass="-1"), r":3: <inertial> of <link 'heavy'>.*-1"),
    "negative moment": (inertial(ixx="-1"), "<inertia> of <link 'heavy'> .*negative"),
    "indefinite inertia": (inertial(extra='ixy="5"'), "<inertia> of <link 'heavy'> .*negative"),
    "mass without inertia": (
        '<robot name="r"><link name="a"><inertial><mass value="1"/></inertial></link></robot>',
        "no <inertia>",
    ),
    "inertia without mass": (
        '<robot name="r"><link name="a"><inertial><inertia ixx="1" iyy="1" izz="1"/></inertial></link></robot>',
        "no <mass>",
    ),
    "NaN": (inertial(mass="nan"), r":3: <mass> of <link 'heavy'> value=\"nan\" is not a finite number"),
    "infinity": (inertial(ixx="inf"), 'ixx="inf" is not a finite'),
    "overflow": (inertial(mass="1e999"), 'value="1e999" is not a finite'),
    "malformed number": (inertial(mass="1,5"), 'value="1,5" is not'),
    "underscored number": (inertial(mass="1_0"), 'value="1_0" is not'),
    "hexadecimal number": (inertial(mass="0x10"), 'value="0x10" is not'),
    "vector too short": (
        robot("a", "b", joints=joint("j", "fixed", "a", "b", '<origin xyz="1 2"/>')),
        "2 numbers; 3 expected",
    ),
    "vector of NaN": (
        robot("a", "b", joints=joint("j", "fixed", "a", "b", '<origin rpy="0 nan 0"/>')),
        "<origin> of <joint 'j'>",
    ),
    "NaN limit": (robot("a", "b", joints=joint("j", "revolute", "a", "b", '<limit lower="nan"/>')), 'lower="nan"'),
    "negative effort": (
        robot("a", "b", joints=joint("j", "revolute", "a", "b", '<limit lower="0" upper="1" effort="-1"/>')),
        "effort -1; it must not be negative",
    ),
    "negative damping": (
        robot("a", "b", joints=joint("j", "revolute", "a", "b", LIMIT + '<dynamics damping="-1"/>')),
        "<dynamics> of <joint 'j'> has the damping -1",
    ),
    "mimic of nothing": (robot("a", "b", joints=joint("j", "revolute", "a", "b", MIMIC.format("x"))), "'j' mimics 'x'"),
    "mimic of itself": (robot("a", "b", joints=joint("j", "revolute", "a", "b", MIMIC.format("j"))), "j -> j .*cycle"),
    "mimic cycle": (
        robot(
            "a",
            "b",
            "c",
            joints=joint("j", "revolute", "a", "b", MIMIC.format("k"))
            + joint("k", "revolute", "b", "c", MIMIC.format("j")),
        ),
        "j -> k -> j .*cycle",
    ),
    "mimic of a fixed joint": (
        robot(
            "a",
            "b",
            "c",
            joints=joint("j", "revolute", "a", "b", MIMIC.format("k")) + joint("k", "fixed", "b", "c", ""),
        ),
        "'k' is fixed",
    ),
    "negative radius": (shape('<sphere radius="-1"/>'), "<sphere> of <link 'a'>.*not negative"),
    "shape without size": (shape("<box/>"), "<box> of <link 'a'>.*size must be given"),
    "sphere without radius": (shape("<sphere/>"), "<sphere> of <link 'a'> has no attribute \"radius\""),
    "mesh without file": (shape("<mesh/>"), '"filename"'),
    "empty geometry": (shape(""), "<geometry> of <link 'a'> is empty"),
    "not a robot": ("<sdf/>", "root element"),
    "xacro": ('<robot name="r" xmlns:xacro="http://ros.org/xacro"><xacro:macro name="m"/></robot>', "run xacro"),
    "xacro value": (inertial(mass="${mass}"), "run xacro"),
    "truncated": ('<robot name="r">\n<link name="a">', r":2: this is not well-formed XML"),
    "not XML": ("hello", "not well-formed XML"),
    "empty": ("", "empty"),
    "blank": (" \n ", "empty"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, tmp_path: Path) -> None:
    text, message = FAULTS[fault]
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        load_model(path) if fault == "not a robot" else read_urdf(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_sound_file_passes(tmp_path: Path) -> None:
    """The faults above are in what they say, not in the frame around them."""
    path = tmp_path / "robot.urdf"
    path.write_text(robot("a", "b", joints=joint("j", "revolute", "a", "b")))
    assert read_urdf(path).nv == 1 and INERTIAL in path.read_text()


def test_no_file_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        read_urdf(tmp_path / "none.urdf")
    with pytest.raises(ModelError, match="not a file"):
        read_urdf(tmp_path)


def refused_quickly(path: Path, message: str) -> None:
    start = time.process_time()
    with pytest.raises(ModelError, match=message):
        read_urdf(path)
    assert time.process_time() - start < 2.0


def test_billion_laughs(tmp_path: Path) -> None:
    entities = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    for use in ('<link name="&a11;"/>', "<link name='a'>&a11;</link>"):
        path = tmp_path / "laughs.urdf"
        path.write_text(f'<?xml version="1.0"?><!DOCTYPE robot [{entities}]><robot name="r">{use}</robot>')
        refused_quickly(path, "entities are refused")
        path.write_bytes(path.read_text().replace('version="1.0"', 'version="1.0" encoding="utf-16"').encode("utf-16"))
        refused_quickly(path, "entities are refused")


def test_external_entity_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    path = tmp_path / "robot.urdf"
    path.write_text(
        f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{secret.as_uri()}">]><robot name="r"><link name="a">&x;</link></robot>'
    )
    with pytest.raises(ModelError, match="entities are refused") as caught:
        read_urdf(path)
    assert "hunter2" not in str(caught.value)


def test_deep_and_large_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.urdf"
    path.write_text("<robot>" + "<a>" * 100_000 + "</a>" * 100_000 + "</robot>")
    refused_quickly(path, "not well-formed XML.*depth")
    with path.open("w") as file:
        file.write("<robot>")
        for _ in range(50):
            file.write("<a>" * 349_525)
    assert path.stat().st_size > 50e6 > MAX_BYTES
    refused_quickly(path, "MB is more than a robot file can have")


SOUND = (
    '<robot name="r"><material name="m"><color rgba="1 0 0 1"/></material><link name="a"/><link name="b">'
    f'{INERTIAL}<visual><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry><material name="m"/></visual>'
    "</link>"
    f'<joint name="j" type="revolute"><origin rpy="1 2 3"/><parent link="a"/><child link="b"/>{LIMIT}</joint></robot>'
)
DEBRIS = [
    "",
    '"',
    "<",
    ">",
    "/",
    "0",
    "-",
    "nan",
    "a",
    "b",
    "&amp;",
    "&",
    "\0",
    "\ud7ff",
    "<link/>",
    '<joint name="k"/>',
]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cuts=st.lists(
        st.tuples(st.integers(0, len(SOUND)), st.integers(0, 12), st.sampled_from(DEBRIS)), min_size=1, max_size=3
    )
)
def test_any_damage_gives_a_robot_or_a_model_error(tmp_path: Path, cuts) -> None:
    text = SOUND
    for at, length, debris in cuts:
        text = text[:at] + debris + text[at + length :]
    path = tmp_path / "damaged.urdf"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        try:
            model = read_urdf(path)
        except ModelError as error:
            assert str(path) in str(error)
        else:
            assert len(model.links) == len(model.joints) + 1
