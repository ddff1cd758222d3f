"""`costate solve`, the table of tasks, and the reports."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from costate.cli.main import main
from costate.tasks.numbers import interpolate, normal, uniform
from costate.train.solve import RECIPES, solve


def test_every_row_makes_a_task() -> None:
    for name, row in RECIPES.items():
        assert name.startswith(row.make().name.split("_")[0])


def test_command_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "racecar", "--starts", "2", "--out", str(tmp_path)]) == 0
    assert "2 of 2 solved" in capsys.readouterr().out
    page = (tmp_path / "racecar.html").read_text()
    assert "Loss over friction" in page
    assert 'class="replay"' in page


def test_search_solves_the_racecar_too() -> None:
    found = solve("racecar", range(2), "search")
    assert found.solved.all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["billiards"], "unknown task 'billiards'"),
        (["racecar", "--method", "ilqr"], "not by 'ilqr'"),
        (["racecar", "--starts", "0"], "at least one problem"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_problem_does_not_depend_on_its_company() -> None:
    assert torch.equal(normal([3], 5)[0], normal([1, 2, 3], 5)[2])
    assert torch.equal(uniform([3], [0.0], [2.0])[0], uniform([4, 3], [0.0], [2.0])[1])


def test_knots_are_joined_by_lines() -> None:
    knots = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    assert torch.allclose(interpolate(knots, 5)[:, 0], torch.tensor([0, 0.5, 1, 2, 3], dtype=torch.float64))
