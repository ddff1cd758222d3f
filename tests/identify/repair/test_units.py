"""Units and signs are put right, with a note that names the column; the robot found is that of the log without the mistake."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.identify.motions import Array, guessed, motion, noisy, with_friction

import costate as cs
from costate.robot import Robot

NAMES = ("ur5", pytest.param("iiwa7", marks=pytest.mark.study))
Spoil = Callable[[dict[str, Array]], None]


def scaled(names: str, factor: float, columns: slice = slice(None)) -> Spoil:
    def spoil(log: dict[str, Array]) -> None:
        for name in names.split():
            log[name] = log[name].copy()
            log[name][..., columns] *= factor

    return spoil


def swapped(names: str, i: int, j: int) -> Spoil:
    def spoil(log: dict[str, Array]) -> None:
        for name in names.split():
            log[name] = log[name].copy()
            log[name][:, [i, j]] = log[name][:, [j, i]]

    return spoil


DEGREES = 180 / np.pi
MISTAKES: dict[str, tuple[Spoil, str]] = {
    "milliseconds": (scaled("t", 1e3), "milliseconds"),
    "degrees": (scaled("q v a", DEGREES), "degrees"),
    "positions in degrees": (scaled("q", DEGREES), "degrees"),
    "velocities in degrees": (scaled("v", DEGREES), "degrees"),
    "a velocity flipped": (scaled("v", -1, slice(3, 4)), "opposite sign"),
    "a velocity of the motor": (scaled("v", 100, slice(1, 2)), "gear"),
    "torques in mN m": (scaled("tau", 1e3), "mN m"),
    "a torque flipped": (scaled("tau", -1, slice(1, 2)), "opposite sign"),
    "all torques flipped": (scaled("tau", -1), "all torques"),
    "a joint flipped": (scaled("q v a", -1, slice(2, 3)), "opposite sign"),
    "a joint and its torque flipped": (scaled("q v a tau", -1, slice(1, 2)), "opposite sign"),
    "torques swapped": (swapped("tau", 1, 3), "are swapped"),
    "joints swapped": (swapped("q v a tau", 1, 2), "are swapped"),
}


@pytest.fixture(scope="module", params=NAMES)
def case(request: pytest.FixtureRequest) -> tuple[Robot, dict[str, Array], Array]:
    true = with_friction(request.param)
    log = noisy(motion(true, n=900), 0.01, 3)
    prior = Robot(guessed(true))
    good = cs.identify(prior, dict(log), physical=False)
    assert not [n for n in good.notes if "units" in n or "joints" in n or "rows" in n or "clock" in n]
    assert good.test is not None
    return prior, log, good.test.after


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_put_right(case: tuple[Robot, dict[str, Array], Array], name: str) -> None:
    prior, log, error = case
    spoil, said = MISTAKES[name]
    table = dict(log)
    spoil(table)
    result = cs.identify(prior, table, physical=False)
    assert result.test is not None
    assert any(said in note for note in result.notes), result.notes
    np.testing.assert_allclose(result.test.after, error, rtol=0.02)


def test_times_in_milliseconds_without_velocities() -> None:
    true = with_friction("ur5")
    log = motion(true, n=800)
    result = cs.identify(Robot(guessed(true)), {"t": 1e3 * log["t"], "q": log["q"], "tau": log["tau"]}, physical=False)
    assert any("milliseconds" in note for note in result.notes)
    assert result.log is not None and result.log.t is not None and result.log.t[-1] == pytest.approx(log["t"][-1])


def test_torques_of_motors_are_refused_with_the_gains_they_need() -> None:
    true = with_friction("ur5")
    log = motion(true, n=800)
    ratio = np.array([100.0, 100, 100, 50, 50, 50])
    with pytest.raises(cs.identify.LogError, match=r"--gains, roughly"):
        cs.identify(Robot(guessed(true)), {**log, "tau": log["tau"] / ratio})
    result = cs.identify(Robot(guessed(true)), {**log, "tau": log["tau"] / ratio}, gains=tuple(ratio), physical=False)
    assert result.test is not None and (result.test.after < 1e-6).all()
