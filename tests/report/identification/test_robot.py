"""The page of a robot's identification, and the command that writes it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.identify.motions import guessed, motion, noisy, with_friction

import costate as cs
from costate.cli.main import main
from costate.model import write_urdf
from costate.report.identification.robot import identification_report
from costate.robot import Robot


@pytest.fixture(scope="module")
def log() -> dict[str, np.ndarray]:
    """Return a log with noise and ten repeated rows."""
    rows = noisy(motion(with_friction("two_link"), n=600), 0.01, 0)
    again = np.sort(np.concatenate([np.arange(600), np.arange(100, 200, 10)]))
    return {name: rows[name][again] for name in ("t", "q", "v", "tau")}


def test_the_page_has_faults_errors_residuals_and_intervals(log: dict[str, np.ndarray]) -> None:
    result = cs.identify(Robot(guessed(with_friction("two_link"))), log)
    html = identification_report(result, {"identified.urdf": "the robot"}).html()
    assert "10 rows" in html and "repeat the row before" in html
    assert html.count('<figure class="plot"') >= 3  # the clock, and torques of two joints
    assert 'href="identified.urdf"' in html
    assert result.test is not None
    for k in range(2):  # the numbers of the result are those of the page
        assert f"{result.test.after[k]:.4g}"[:5] in html
    assert len(re.findall(r"<tr", html)) > result.base.rank + len(result.names)


def test_a_log_without_faults_says_so() -> None:
    true = with_friction("two_link")
    result = cs.identify(Robot(guessed(true)), motion(true, n=300))
    assert ("Nothing was found to be wrong" in identification_report(result).html()) == (not result.notes)


def test_the_command_writes_page_urdf_and_mjcf(log: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", **log)  # pyright: ignore[reportArgumentType]
    write_urdf(guessed(with_friction("two_link")), tmp_path / "arm.urdf")
    out = tmp_path / "out"
    main(["identify", str(tmp_path / "arm.urdf"), str(tmp_path / "log.npz"), "--out", str(out), "--no-plots"])
    assert {"report.html", "report.txt", "identified.urdf", "identified.xml"} <= {p.name for p in out.iterdir()}
    a, b = cs.load_robot(out / "identified.urdf"), cs.load_robot(out / "identified.xml")
    q, v = torch.tensor([0.3, -0.7]), torch.tensor([1.0, -2.0])
    numbers = [r.inverse_dynamics(q, v, 0.5 * v) for r in (a, b)]
    np.testing.assert_allclose(*(x.detach().numpy() for x in numbers), rtol=1e-9)
