"""The audit against the motion, in short."""

from __future__ import annotations

import sys

import pytest
import torch

from benchmarks import study_motion
from benchmarks.motion.compare import DIFFERENCES, EVENTS, Scene
from benchmarks.motion.ours import states, world_of
from benchmarks.motion.scenes import kinds


def test_an_error_must_be_small_and_fall() -> None:
    def judged(*errors: float, uncertain: float = 0.0) -> bool:
        return Scene("balls", 0, EVENTS, errors=list(errors), uncertain=uncertain).falls

    assert judged(0.3, 0.03, 0.003) and judged(1e-5, 1e-5, 1e-5)
    assert not judged(0.3, 0.3, 0.3) and not judged(0.015, 0.015, 0.015) and not judged(1.0, 0.2, 0.03)
    assert judged(0.3, 0.06, 0.05, uncertain=0.04)
    assert not Scene("balls", 0, "", "grazes").compared and Scene("balls", 0, DIFFERENCES).compared


@pytest.mark.parametrize("name", [name for name in kinds() if "flight" not in name])
def test_nothing_overlaps_at_a_start(name: str) -> None:
    kind = kinds()[name]
    world = world_of(kind)
    starts = [kind.start(seed) for seed in range(20)]
    state = states(kind, starts, torch.zeros(20, dtype=torch.float64))
    assert float(world.gaps(state).min()) > 4e-3


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["study_motion", "--smoke"])
    study_motion.main()
    shown = capsys.readouterr().out
    assert "| ball dropped from 1 m, e = 1, 0.8 s | dz/dz0 | 0.5436 |" in shown
    assert "| all | events | 3 |" in shown
