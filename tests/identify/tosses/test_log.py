"""Files of tosses: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.gradients import check_gradients
from tests.identify.tosses.throws import DT

from costate.identify import LogError
from costate.identify.tosses import read_tosses
from costate.identify.tosses.log import POSE, RATES, tosses_of
from costate.identify.tosses.turns import product, rotated, turn_between, turned


def table(rows: int = 12) -> np.ndarray:
    """Return rows of a body that falls and turns about x at 2 rad/s, in the order of the files."""
    t = DT * np.arange(rows)[:, None]
    zero = 0 * t
    turn = np.hstack([np.cos(t), np.sin(t), zero, zero])
    rates = np.hstack([0.3 + zero, zero, -9.81 * t, 2.0 + zero, zero, zero])
    return np.hstack([0.3 * t, zero, 1 - 4.905 * t**2, turn, rates])


def test_npz_and_csv_hold_the_same_tosses(tmp_path: Path) -> None:
    rows = np.vstack([table(), table()])
    np.savez(tmp_path / "a.npz", state=rows, starts=[0, 12, 24], dt=DT)
    number, t = np.repeat([1, 2], 12)[:, None], np.tile(DT * np.arange(12), 2)[:, None]
    head = ",".join(("toss", "t", *POSE, *RATES))
    np.savetxt(tmp_path / "a.csv", np.hstack([number, t, rows]), delimiter=",", header=head, comments="")
    a, b = read_tosses(tmp_path / "a.npz"), read_tosses(tmp_path / "a.csv")
    assert len(a) == len(b) == 2 and a.dt == pytest.approx(b.dt)
    torch.testing.assert_close(a.states, b.states)
    v = rotated(a.states[:, 3:7], a.states[:, 7:10])  # velocities of states are in body axes
    np.testing.assert_allclose(v.numpy(), rows[:, 7:10], atol=1e-12)


def test_velocities_that_were_not_logged_are_differences() -> None:
    tosses = tosses_of(table()[:, :7], np.array([0, 12]), DT)
    assert "differences" in tosses.notes[0]
    v = rotated(tosses.states[:, 3:7], tosses.states[:, 7:10])
    assert v[:, 0].numpy() == pytest.approx(0.3) and tosses.states[:, 10].numpy() == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r[:, :9], "7 columns"),
        (lambda r: np.where(np.arange(12)[:, None] == 4, np.nan, r), "row 5"),
        (lambda r: np.hstack([r[:, :3], 2 * r[:, 3:]]), "length 2"),
    ],
)
def test_bad_rows_are_named(change, said: str) -> None:
    with pytest.raises(LogError, match=said):
        tosses_of(change(table()), np.array([0, 12]), DT)


def test_uneven_times_and_missing_columns_are_refused(tmp_path: Path) -> None:
    t = DT * np.arange(12)[:, None] ** 1.2
    rows = np.hstack([np.ones((12, 1)), t, table()[:, :7]])
    path = tmp_path / "a.csv"
    np.savetxt(path, rows, delimiter=",", header=",".join(("toss", "t", *POSE)), comments="")
    with pytest.raises(LogError, match="even times"):
        read_tosses(path)
    np.savetxt(path, rows[:, 1:], delimiter=",", header=",".join(("t", *POSE)), comments="")
    with pytest.raises(LogError, match="'toss'"):
        read_tosses(path)


def test_turns_are_inverse_to_each_other_and_differentiable() -> None:
    random = torch.Generator().manual_seed(0)
    a = torch.nn.functional.normalize(torch.randn(5, 4, generator=random, dtype=torch.float64), dim=-1)
    x = torch.randn(5, 3, generator=random, dtype=torch.float64)
    torch.testing.assert_close(turn_between(a, turned(a, x)), x)
    torch.testing.assert_close(turn_between(a, -turned(a, x)), x)  # both quaternions are one rotation
    b = turned(a, x)
    torch.testing.assert_close(rotated(product(a, b), x), rotated(a, rotated(b, x)))
    check_gradients(lambda x: turn_between(a.to(x), turned(a.to(x), x)), (x,))
    at_rest = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    turn_between(a[0], turned(a[0], at_rest)).sum().backward()
    torch.testing.assert_close(at_rest.grad, torch.ones(3, dtype=torch.float64))
