"""One wrong row is named and left out, in any column; smooth and noisy columns and the steps of friction have none."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from tests.identify.motions import guessed, motion, noisy, with_friction

import costate as cs
from costate.identify.log import Log
from costate.identify.repair.rows import without_spikes
from costate.robot import Robot


@pytest.mark.parametrize("name", ["ur5", "iiwa7", "pendulum2"])
def test_good_rows_stay(name: str) -> None:
    log = motion(with_friction(name), n=1200)
    for table in (log, noisy(log, 0.01, 0), noisy(log, 0.2, 1)):
        assert without_spikes(Log(**cast(Any, table)))[1] == []


@pytest.mark.parametrize("name", ["ur5", "pendulum2"])
@pytest.mark.parametrize("row", [0, 500, 1199])
@pytest.mark.parametrize("with_a", [True, False])
def test_a_velocity_of_zero(name: str, row: int, with_a: bool) -> None:
    """A difference padded with zero: named, and the result is that without this row."""
    true = with_friction(name)
    log = noisy(motion(true, n=1200), 0.01, 0)
    table = {k: x.copy() for k, x in log.items() if with_a or k != "a"}
    table["v"][row] = 0.0
    if with_a:
        table["a"][1:] = np.diff(table["v"], axis=0) / np.diff(table["t"])[:, None]
        table["a"][0] = 0.0
    result = cs.identify(Robot(guessed(true)), table)
    where = "row 0" if row == 0 else f"row {row}"
    assert any("sticks out" in note and where in note for note in result.notes), result.notes
    assert result.test is not None
    level = 0.01 * np.sqrt((log["tau"] ** 2).mean(0))
    assert (result.test.raw < 1.5 * level).all()


@pytest.mark.parametrize("name", ["ur5", "iiwa7", "pendulum2"])
def test_wrong_rows_do_not_crash_without_repair(name: str) -> None:
    true = with_friction(name)
    for seed in range(3):
        log = noisy(motion(true, n=600, seed=seed), 0.01, seed)
        table = {k: x.copy() for k, x in log.items() if k != "a"}
        table["v"][0] = 0.0
        result = cs.identify(Robot(guessed(true)), table, repair=False, check=False)
        assert np.isfinite(result.values).all()
