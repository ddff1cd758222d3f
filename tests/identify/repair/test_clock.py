"""Clocks: repeated rows, lost ticks and jitter are found and repaired; good clocks are left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.identify.motions import Array, guessed, motion, noisy, with_friction

import costate as cs
from costate.identify.log import Log
from costate.identify.repair.clock import repair_clock
from costate.robot import Robot

PANDA = Path(__file__).parents[4] / "shared" / "data" / "panda_raw.csv"


def spoilt(log: dict[str, Array], seed: int = 0) -> tuple[dict[str, Array], Array]:
    """Rows of which some were lost and some repeat, with stamps that jitter; and the true times of the rows."""
    rng = np.random.default_rng(seed)
    n, dt = len(log["t"]), log["t"][1]
    rows = np.flatnonzero(rng.random(n) > 0.05)
    rows = np.sort(np.concatenate([rows, rng.choice(rows, n // 20, replace=False)]))
    table = {k: x[rows] for k, x in log.items()}
    later = np.concatenate([[False], np.diff(rows) == 0])
    stamps = table["t"] + 0.6 * dt * later + 0.3 * dt * rng.random(len(rows))
    return {**table, "t": stamps}, log["t"][np.unique(rows)]


@pytest.mark.parametrize("name", ["ur5", "iiwa7"])
@pytest.mark.parametrize("quantities", ["q v tau", "q tau"])
def test_lost_and_repeated_rows(name: str, quantities: str) -> None:
    """The true times are found again up to their start, with or without velocities."""
    full = noisy(motion(with_friction(name), n=3000, dt=0.004), 0.01, 1)
    table, times = spoilt({k: full[k] for k in ("t", *quantities.split())})
    log, clock = repair_clock(Log(**cast(Any, table)))
    assert log.t is not None and clock.tick == pytest.approx(0.004, rel=5e-3)
    found = log.t - log.t[0]
    if len(found) == len(times):
        np.testing.assert_allclose(found, times - times[0], rtol=5e-3, atol=1e-9)
    assert abs(len(found) - len(times)) <= (0 if "v" in quantities else 3)
    assert clock.lost == pytest.approx(3000 - len(times), abs=5)
    assert any("repeat" in note for note in clock.notes()) and any("ticks were lost" in note for note in clock.notes())


def test_good_clocks_are_left_alone() -> None:
    log = motion(with_friction("ur5"), n=800)
    rng = np.random.default_rng(0)
    for t in (log["t"], log["t"] + 3.0):
        found, clock = repair_clock(Log(q=log["q"], tau=log["tau"], t=t, v=log["v"]))
        assert clock.tick is None and not clock.notes() and found.t is t
    uneven = np.sort(rng.choice(4000, 1500, replace=False))  # true stamps of an uneven sampling
    fine = motion(with_friction("ur5"), n=4000, dt=0.0037)
    _, clock = repair_clock(Log(q=fine["q"][uneven], tau=fine["tau"][uneven], t=fine["t"][uneven], v=fine["v"][uneven]))
    assert clock.tick is None


@pytest.mark.parametrize("name", ["ur5", pytest.param("iiwa7", marks=pytest.mark.study)])
def test_identification_with_a_bad_clock(name: str) -> None:
    """As good as with the true clock, and several times better than without repair, where noise does not hide it."""
    true = with_friction(name)
    full = noisy(motion(true, n=3000, dt=0.004), 1e-5, 1)
    bad, _ = spoilt({k: full[k] for k in ("t", "q", "v", "tau")})
    prior = Robot(guessed(true))
    good = cs.identify(prior, {k: full[k] for k in ("t", "q", "v", "tau")}, physical=False)
    repaired = cs.identify(prior, bad, physical=False)
    left = cs.identify(prior, bad, physical=False, repair=False)
    assert good.test and repaired.test and left.test
    assert (repaired.test.raw < 2 * good.test.raw).all()
    assert (left.test.raw > 2 * repaired.test.raw).any()


@pytest.mark.study
@pytest.mark.skipif(not PANDA.is_file(), reason="the measured log is not here")
def test_panda_as_it_was_logged(tmp_path: Path) -> None:
    """The raw log of a real arm, without an option: at most 0.5 N m on joints 1-4 and 0.1 N m on joints 5-7, held out."""
    result = cs.identify("panda", PANDA)
    assert result.test is not None
    assert (result.test.after[:4] < 0.5).all() and (result.test.after[4:] < 0.1).all()
    assert result.clock is not None and result.clock.tick == 1e-3
    notes = "\n".join(result.notes)
    for part in ("repeat the row before", "ticks were lost", "panda_finger_joint1", "lag by"):
        assert part in notes
    assert "clock.png" in {path.name for path in result.plot(tmp_path)}
