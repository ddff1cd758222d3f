"""Inertias that no body can have, in MJCF files and for built-in robots: refused in words, or repaired."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costate.cli.main import main
from costate.compat.differentiable_robot_model import DifferentiableRobotModel
from costate.model import ModelError, ModelWarning, builtin_names, load_model
from costate.model.urdf.inertia import nearest_inertia

FAULTY = {
    'diaginertia="0.1 0.1 0.3"': np.diag([0.1, 0.1, 0.3]),
    'diaginertia="0.1 0.2 -0.1"': np.diag([0.1, 0.2, -0.1]),
    'fullinertia="0.1 0.1 0.3 0.01 0 0.02"': np.array([[0.1, 0.01, 0], [0.01, 0.1, 0.02], [0, 0.02, 0.3]]),
    'fullinertia="1 1 1 2 0 0"': np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]),
}
TURN = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])


def write(folder: Path, inertia: str, turned: bool = False) -> Path:
    quaternion = 'quat="0.7071067811865476 0 0 0.7071067811865476"' if turned else ""
    path = folder / "arm.xml"
    path.write_text(
        f"""<mujoco><worldbody><body name="a"><joint name="j" axis="0 0 1"/>
        <inertial pos="0.1 0 0" {quaternion} mass="2" {inertia}/></body></worldbody></mujoco>"""
    )
    return path


@pytest.mark.parametrize("inertia", FAULTY)
def test_mjcf_is_repaired_as_urdf_is(tmp_path: Path, inertia: str) -> None:
    turned = inertia.startswith("diag")
    path = write(tmp_path, inertia, turned)
    for answer in ("refuse", "keep"):
        with pytest.raises(ModelError, match=r"MuJoCo refuses this file(.|\n)*inertia=\"repair\""):
            load_model(path, inertia=answer)
    with pytest.warns(ModelWarning, match="no body can have, repaired: a"):
        found = load_model(path, inertia="repair").link("a").inertia
    expected = nearest_inertia(FAULTY[inertia])
    expected = TURN @ expected @ TURN.T if turned else expected
    np.testing.assert_allclose(found.matrix, expected, atol=1e-8)
    assert found.mass == 2.0


def test_sound_inertias_are_left_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path, 'diaginertia="0.1 0.2 0.3"')
    refused, repaired = load_model(path, inertia="refuse"), load_model(path, inertia="repair")
    assert np.array_equal(refused.link("a").inertia.matrix, repaired.link("a").inertia.matrix)


@pytest.mark.parametrize("name", [*builtin_names(), "arm.xml"])
def test_an_answer_that_there_is_not_is_refused_everywhere(name: str, tmp_path: Path) -> None:
    source = write(tmp_path, 'diaginertia="1 1 1"') if name == "arm.xml" else name
    with pytest.raises(ValueError, match=r"'repare' \(did you mean 'repair'\?\): use one of refuse, keep, repair"):
        load_model(source, inertia="repare")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", [n for n in builtin_names() if n != "pendulum"])
def test_built_in_robots_are_repaired_too(name: str) -> None:
    """Every inertia is one that a body can have: no principal moment exceeds the sum of the others."""
    for link in load_model(name, inertia="repair").links:
        low, middle, high = np.linalg.eigvalsh(link.inertia.matrix)
        assert low >= -1e-5 * high and low + middle >= high * (1 - 1e-5)


BENT = """<robot name="bent"><link name="base"/><link name="tip"><inertial><mass value="1"/>
  <inertia ixx="0.1" iyy="0.1" izz="-0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="1 0 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


@pytest.mark.filterwarnings("ignore::costate.model.errors.ModelWarning")
def test_the_command_line_and_the_drop_in_take_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bent.urdf"
    path.write_text(BENT)
    log = tmp_path / "log.csv"
    log.write_text("t,q_j,tau_j\n0,0,0\n")
    commands = [
        ["bench", "--seconds", "0"],
        ["gradcheck"],
        ["identify", str(log)],
        ["render", str(tmp_path / "picture.png")],
        ["view"],
    ]
    for command, *rest in commands:
        line = [command, str(path), *rest]
        assert main(line) != 0, line
        assert "none may be negative" in capsys.readouterr().err, line
    bench = ["bench", str(path), "--seconds", "0", "--batches", "1", "--inertia", "keep"]
    assert main(bench) == 0
    assert main(["identify", str(path), str(log), "--inertia", "repair"]) != 0
    assert "negative" not in capsys.readouterr().err  # the log is too short, the robot is not refused
    kept, repaired = DifferentiableRobotModel(path), DifferentiableRobotModel(path, inertia="repair")
    found = [np.diag(x._robot.model.link("tip").inertia.matrix) for x in (kept, repaired)]
    np.testing.assert_allclose(found, [[0.1, 0.1, -0.05], [0.125, 0.125, 0.0]], atol=1e-12)
    with pytest.raises(ModelError, match="none may be negative"):
        DifferentiableRobotModel(path, inertia="refuse")
