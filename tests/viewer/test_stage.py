"""The parts of the viewer that need no browser: quaternions, ports, recordings, the user's hand."""

from __future__ import annotations

import json
import re
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import costate as cs
from costate.cli.main import main
from costate.draw.poses import Kinematics
from costate.draw.recording import NOTE, load_recording, record, save_recording
from costate.model.rotation import from_rpy
from costate.viewer.live import Hand, Live
from costate.viewer.server import HOST, free_port, start
from costate.viewer.stage import Touched, quaternions


def rotated(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v turned by the unit quaternion wxyz: v + 2 w (u x v) + 2 u x (u x v)."""
    w, u = q[0], q[1:]
    return v + 2 * w * np.cross(u, v) + 2 * np.cross(u, np.cross(u, v))


@pytest.mark.parametrize("angles", [(0, 0, 0), (np.pi, 0, 0), (0, np.pi, 0), (0, 0, np.pi), (1, 2, 3), (-3, 0.1, 2)])
def test_quaternions_turn_as_their_rotations_do(angles: tuple[float, float, float]) -> None:
    R, v = from_rpy(angles), np.array([0.3, -1.0, 2.0])
    q = quaternions(R[None])[0]
    assert np.linalg.norm(q) == pytest.approx(1.0)
    assert rotated(q, v) == pytest.approx(R @ v)


def test_poses_of_links_are_those_of_forward_kinematics() -> None:
    robot = cs.load_robot("ur5")
    q = torch.randn(4, 6, dtype=torch.float64)
    links = Kinematics(robot.model)(q)
    for k, pose in enumerate(robot.forward_kinematics(q).values()):
        assert links[:, k, :, 3] == pytest.approx(pose.position.numpy())
        assert links[:, k, :, :3] == pytest.approx(pose.rotation.numpy())


def test_a_taken_port_is_said_and_the_next_one_used(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = free_port(port)
        assert port < found < port + 100
        assert capsys.readouterr().out == f"port {port} is taken; using {found}\n"


def test_without_viser_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r"needs viser: .*\[view\]"):
        start()


# Recordings.


def recording_of_a_swing():
    robot = cs.load_robot("pendulum2")
    q = torch.linspace(0, 1, 5, dtype=torch.float64)[:, None].expand(5, 2).contiguous()
    return record(robot, q, dt=0.1, gradient=torch.ones(5, 2), trails=[robot.link_names[-1]])


def test_recordings_come_back_as_they_were(tmp_path: Path) -> None:
    before = recording_of_a_swing()
    after = load_recording(save_recording(before, tmp_path / "run"))
    assert np.array_equal(after.motion.links, before.motion.links)
    assert np.array_equal(after.motion.instances(3), before.motion.instances(3))
    assert after.trails == before.trails and after.motion.drawing.links == before.motion.drawing.links
    assert after.heat is not None and before.heat is not None and after.heat.names == before.heat.names
    assert list(after.curves) == ["positions"]
    for a, b in zip(after.arrows["descent"], before.arrows["descent"], strict=True):
        assert np.array_equal(a, b)


def test_a_recording_of_another_version_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_recording(recording_of_a_swing(), tmp_path / "run")
    note = json.loads((folder / NOTE).read_text()) | {"format": 99, "costate": "7.5.0"}
    (folder / NOTE).write_text(json.dumps(note))
    assert main(["view", str(folder)]) == 2
    message = capsys.readouterr().err
    assert "written by costate 7.5.0 in format 99" in message and "reads format 1" in message


@pytest.mark.parametrize("damage", ["empty", "cut", "no numbers", "no note"])
def test_damaged_recordings_are_refused(damage: str, tmp_path: Path) -> None:
    folder = save_recording(recording_of_a_swing(), tmp_path / "run")
    if damage == "empty":
        (folder / NOTE).write_text("{")
    elif damage == "cut":
        numbers = folder / "recording.safetensors"
        numbers.write_bytes(numbers.read_bytes()[:200])
    elif damage == "no numbers":
        (folder / "recording.safetensors").unlink()
    else:
        (folder / NOTE).unlink()
    with pytest.raises(ValueError, match=r"is damaged|is no recording"):
        load_recording(folder)


def test_commands_draw_and_report_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = save_recording(recording_of_a_swing(), tmp_path / "run")
    assert main(["render", str(folder), str(tmp_path / "swing.png"), "--size", "80", "60"]) == 0
    assert main(["render", "pendulum1", str(tmp_path / "still.png"), "--size", "80", "60"]) == 0
    assert main(["report", str(folder)]) == 0
    assert (tmp_path / "swing.png").stat().st_size > 500 and (tmp_path / "still.png").stat().st_size > 500
    assert "replay-0" in (folder / "report.html").read_text()
    assert main(["view", "ur6"]) == 2
    assert re.search("neither a built-in robot nor a file", capsys.readouterr().err)


# The user's hand.


@pytest.fixture(scope="module")
def live():
    ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=2.0)
    world = cs.World(bodies=[ball], contact=None, gravity=(0, 0, 0), dt=0.01)
    server = start(8200)
    yield Live(server, world)
    server.stop()


class Drag:
    """What the page says of a drag."""

    def __init__(self, phase: str, start: tuple[float, float, float], end: tuple[float, float, float]):
        self.phase, self.start_position, self.end_position = phase, start, end


def test_a_dragged_body_comes_to_the_pointer_and_rests(live: Live) -> None:
    live.reset()
    touched = Touched(link=1, sample=0)
    live.hand._dragged(touched, Drag("start", (0.0, 0.0, 0.0), (0.5, 0.0, 0.2)))
    for _ in range(200):
        live.step()
    assert live.state[:3].tolist() == pytest.approx([0.5, 0.0, 0.2], abs=1e-3)
    assert live.state[7:].abs().max() < 1e-3
    live.hand._dragged(touched, Drag("end", (0.0, 0.0, 0.0), (0.5, 0.0, 0.2)))
    assert live.hand.grip is None


def test_a_push_changes_the_velocity_by_what_it_says(live: Live) -> None:
    live.reset()
    live.hand.push("ball/body", np.array([0.0, 1.5, 0.0]))
    for _ in range(30):
        live.step()
    assert live.state[7:10].tolist() == pytest.approx([0.0, 1.5, 0.0], abs=1e-9)
    assert Hand.PUSH_TIME / live.world.dt == 10


def test_a_world_that_diverges_starts_again(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    live.state = live.start.clone()
    live.state[7] = float("nan")
    live.step()
    assert torch.equal(live.state, live.start) and live.step_number == 0
    assert "starting again: " in capsys.readouterr().out


def test_fast_worlds_are_shown_at_the_rate_of_the_page(live: Live) -> None:
    world = cs.World(bodies=[cs.Body("ball", [cs.shapes.sphere(0.1)], mass=2.0)], contact=None, dt=0.001)
    fast = Live(live.server, world)
    fast.step()  # compiled
    steps = fast.step_number
    fast.run(seconds=2.0)
    assert fast.step_number - steps > 1500  # 1 kHz, less what a loaded machine takes
    assert 20 < fast.frames_sent <= 125  # 60 Hz


@pytest.mark.parametrize("value", [3, ("a", 1), (1.0, 2.0)])
def test_options_that_cannot_be_shown_are_refused(live: Live, value: object) -> None:
    with pytest.raises(ValueError, match="option 'gain'"):
        Live(live.server, live.world, options={"gain": value})
