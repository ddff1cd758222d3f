"""Tool paths against motions on paper."""

from __future__ import annotations

import numpy as np
import pytest

from costate.continuum import ToolPath

PATH = ToolPath(
    np.array([1.0, 3.0, 4.0, 4.0, 6.0]),
    np.array([[0, 0, 0], [2, 0, 0], [2, 0, 0], [5, 0, 1], [5, 4, 1]], dtype=float),
    np.array([True, True, False, False, True]),
)


@pytest.mark.parametrize(
    ("time", "position", "on"),
    [
        (0.0, (0, 0, 0), False),  # before the start
        (1.0, (0, 0, 0), True),  # of a segment the first moment belongs to it, the last one to the next
        (2.0, (1, 0, 0), True),
        (3.0, (2, 0, 0), False),
        (3.5, (2, 0, 0), False),
        (4.0, (5, 0, 1), True),  # after the jump
        (5.5, (5, 3, 1), True),
        (6.0, (5, 4, 1), False),
        (9.0, (5, 4, 1), False),
    ],
)
def test_position_and_state_at_a_time(time: float, position: tuple, on: bool) -> None:
    where, is_on = PATH.at(time)
    np.testing.assert_allclose(where, position, atol=1e-15)
    assert is_on == on


def test_many_times_at_once() -> None:
    times = np.linspace(0, 7, 60).reshape(3, 20)
    where, on = PATH.at(times)
    assert where.shape == (3, 20, 3) and on.shape == (3, 20)
    for k in np.ndindex(3, 20):
        one, is_on = PATH.at(times[k])
        assert (where[k] == one).all() and on[k] == is_on


def test_lengths_and_times() -> None:
    assert PATH.duration == 5 and PATH.time_on == 4
    assert PATH.length == pytest.approx(2 + np.sqrt(10) + 4) and PATH.length_on == 6


@pytest.mark.parametrize(
    ("times", "positions", "on", "message"),
    [
        ([0, 1, 0.5], np.zeros((3, 3)), [1, 1, 1], "times goes from 1 to 0.5 at row 2; expected ascending"),
        ([0, 1], np.zeros((3, 3)), [1, 1], "2 times, 3 positions and 2 states; expected as many of each"),
        ([0, 1], np.zeros((2, 2)), [1, 1], "positions has the shape"),
        ([0], np.zeros((1, 3)), [1], "a path of 1 rows; expected two or more"),
        ([0, np.nan], np.zeros((2, 3)), [1, 1], "expected a row of finite numbers"),
    ],
)
def test_what_is_wrong_is_said(times: list, positions: np.ndarray, on: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ToolPath(np.array(times), positions, np.array(on))
