"""Tasks of cloth: what a towel is made of, from its fall."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from costate.cli.solve import CLOTH, Options, run
from costate.tasks.cloth.towel import CLOTH_TASKS, METHODS, TowelTask

SMALL = TowelTask(points=6, steps=25)


def test_gradients_find_friction_and_bending() -> None:
    """Both methods with gradients end at the same numbers, near the true ones."""
    found = {m: replace(SMALL, method=m).solve(7, lambda text: None) for m in ("gauss_newton", "lbfgs")}
    for each in found.values():
        assert each.solved
        assert min(each.losses) < 1.2 * SMALL.noise**2  # what is left is the noise
        assert all(float(r["from"]) < float(r["found"]) < float(r["to"]) for r in each.rows)
    first, second = ([float(r["found"]) for r in f.rows] for f in found.values())
    assert first == pytest.approx(second, rel=2e-3)
    assert len(found["gauss_newton"].losses) < 15


def test_search_goes_on_without_gradients() -> None:
    found = replace(SMALL, method="search", iterations=1).solve(7, lambda text: None)
    assert found.facts["gradients"] == 0 and len(found.losses) > 20
    assert min(found.losses) < 0.5 * found.losses[0]


def test_a_report_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CLOTH_TASKS, "cloth_towel", SMALL)
    run(Options("cloth_towel", iterations=3, out=tmp_path))
    assert "roll-outs" in capsys.readouterr().out
    assert (tmp_path / "cloth_towel.html").stat().st_size > 10_000
    assert set(CLOTH) == set(CLOTH_TASKS)


def test_methods_that_there_are_not_are_named() -> None:
    with pytest.raises(ValueError, match="gauss_newton"):
        replace(SMALL, method=f"{next(iter(METHODS))}s").solve(0, lambda text: None)
