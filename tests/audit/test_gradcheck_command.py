"""`costate gradcheck`: right robots and worlds pass, wrong ones are found, with exit code 1."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from costate.audit import robots
from costate.cli.main import main

FALLING = """
import costate as cs
ball = cs.Body("ball", [cs.shapes.sphere(0.1)], mass=1.0)
ground = cs.Static("ground", cs.shapes.plane())
world = cs.World(bodies=[ball], scenery=[ground], contact=cs.Compliant(smoothing=5e-3), dt=2e-3)
state = world.initial_state()
state[2] = 0.3
"""


def test_a_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["gradcheck", "pendulum1", "--functions", "gravity_torques", "momentum", "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "right" in shown and "values are compared with Pinocchio" in shown
    assert "Derivatives by input" in page.read_text()


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots, "_joined", lambda values, k: 1.001 * torch.cat(list(values.values()), -1)[k].numpy())
    assert (
        main(
            [
                "gradcheck",
                "pendulum1",
                "--functions",
                "gravity_torques",
                "--second-order",
                "False",
                "--float32",
                "False",
            ]
        )
        == 1
    )


def test_a_world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "falling.py"
    path.write_text(FALLING)
    assert main(["gradcheck", str(path), "--steps", "5"]) == 0
    assert "step, at the start" in capsys.readouterr().out


def test_what_it_cannot_check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1")
    assert main(["gradcheck", str(empty)]) == 2
    assert "defines no world" in capsys.readouterr().err
    assert main(["gradcheck", "pendulum1", "--functions", "warp"]) == 2
