"""`python -m benchmarks.peers`, with a real peer."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.__main__ import main
from benchmarks.peers.results import Results


def test_quick(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mujoco")
    json, page = tmp_path / "results.json", tmp_path / "peers.md"
    chosen = ["--peers", "mujoco", "--quantities", "kinematics,forward_dynamics,steps"]
    assert main(["--quick", "--here", *chosen, "--json", str(json), "--markdown", str(page)]) == 0
    results = Results.load(json)
    assert len(results.rows) == 6 and not any(r.reason for r in results.rows)
    dynamics, heights = ([r.values for r in results.find(q)] for q in ("forward_dynamics", "steps"))
    assert dynamics[1] == pytest.approx(dynamics[0], rel=1e-9, abs=1e-9)  # the same robot in both
    assert heights[1] == pytest.approx(heights[0], abs=2e-3)  # both stand; contact is hard here, soft there
    assert "Steps with contact" in page.read_text() and "mujoco" in page.read_text()
    assert main(["--again", str(json)]) == 0
    assert "UR5, fixed base, 6 joints" in capsys.readouterr().out


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listing = capsys.readouterr().out
    assert "genesis-world, torch==2.13.0" in listing and "rollout_gradient" in listing
