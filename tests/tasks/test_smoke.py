"""Tasks of fluids: each gets better by what its gradient says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from costate.cli.main import main
from costate.cli.solve import FLOWS
from costate.tasks.smoke.drag import RADIUS, RESISTANCE, WAVES, DragTask
from costate.tasks.smoke.jet import JetTask
from costate.tasks.smoke.names import FLOW_TASKS, flow_task
from costate.tasks.smoke.problem import SIZES
from costate.tasks.smoke.target import disk, letter


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a size for tests."""
    monkeypatch.setitem(SIZES, "tiny", 16)


def silent(text: str) -> None:
    """Say nothing."""


def test_names() -> None:
    """What is listed is what there is."""
    assert {name: task.summary for name, task in FLOW_TASKS.items()} == {
        name: text for name, (text, _) in FLOWS.items()
    }
    with pytest.raises(ValueError, match="did you mean 'smoke_target'"):
        flow_task("smoke_targt")
    with pytest.raises(ValueError, match="use one of small"):
        flow_task("smoke_target", size="huge").solve(0, silent)


def test_letters_and_disks() -> None:
    """Letters are upright: an L is heavy at its left and at its foot. Disks have their area."""
    picture = letter("L", 40)
    assert picture[:20].sum() > 0.6 * picture.sum()
    assert picture[:, :20].sum() > 0.55 * picture.sum()
    assert disk(64, 0.2).mean() == pytest.approx(0.2, rel=0.01)


def test_smoke_goes_towards_a_letter(tmp_path: Path) -> None:
    """Half of the difference is gone after a few iterations, and float32 begins the same; the command writes its report."""
    task = flow_task("smoke_target", size="tiny", iterations=12)
    found = task.solve(0, silent)
    assert min(found.losses) < 0.5 * found.losses[0]
    single = replace(task, iterations=0).solve(0, silent, torch.float32)  # type: ignore[type-var]
    assert single.losses[0] == pytest.approx(found.losses[0], rel=1e-4)
    assert found.films["Smoke"].values.shape == (41, 16, 16)
    main(["solve", "smoke_target", "--size", "tiny", "--iterations", "1", "--out", str(tmp_path)])
    assert "particles" in (tmp_path / "smoke_target.html").read_text()


def test_fans_steer_a_plume() -> None:
    """The plume comes nearer to the place; without wind it rises in the middle."""
    found = JetTask(size="tiny", iterations=14, rate=0.03).solve(2, silent)
    facts = found.facts
    assert facts["place before [m]"] == pytest.approx(0.5, abs=1e-6)
    assert facts["error [m]"] < 0.5 * abs(0.5 - facts["place wanted [m]"])


def test_drag_falls() -> None:
    """A few iterations make the shape slender; every outline has the area of the circle."""
    task = DragTask(size="tiny", iterations=3, rate=0.1)
    found = task.solve(0, silent)
    assert found.losses[0] == pytest.approx(1.0)
    assert min(found.losses) < 0.9
    model, _ = replace(task, size="medium").tunnel(torch.float64)
    for waves in (torch.zeros(WAVES), 0.2 * torch.ones(WAVES)):
        area = float(task.resistance(model.grid, waves.double()).sum()) * model.grid.cell**2 / RESISTANCE
        assert area == pytest.approx(np.pi * RADIUS**2, rel=0.06)
