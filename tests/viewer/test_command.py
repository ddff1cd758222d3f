"""`costate view` as a user runs it: it says where to look, answers, and ends when it is interrupted."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.interrupts import listen_to_interrupts

BROKEN = """<robot name="wall"><link name="brick"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="package://gone/brick.stl"/></geometry></visual></link></robot>"""


@pytest.mark.skipif(sys.platform == "win32", reason="interrupted differently there")
def test_view_serves_a_page_beside_a_taken_port_and_a_missing_mesh(tmp_path: Path) -> None:
    (tmp_path / "wall.urdf").write_text(BROKEN)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "costate.cli",
            "view",
            "pendulum1",
            str(tmp_path / "wall.urdf"),
            "--port",
            str(port),
        ]
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen_to_interrupts
        )
        try:
            assert running.stdout is not None
            assert running.stdout.readline().startswith(f"port {port} is taken; using ")
            address = running.stdout.readline().removeprefix("open ").strip()
            with urllib.request.urlopen(address, timeout=300) as answer:
                assert b"<html" in answer.read().lower()
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=600)
            assert running.returncode == 0, errors
            assert "'brick' is drawn as a box" in errors and "Traceback" not in errors
        finally:
            running.kill()
            running.wait()
