"""The accuracy matrix: what is committed holds its bounds, and a sample of it is computed anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.matrix import matrix
from benchmarks.matrix.__main__ import main
from benchmarks.matrix.cell import Cell, cells_of
from benchmarks.matrix.matrix import all_parts, load_matrix, merge
from benchmarks.matrix.page import markdown
from costate.audit.check import Check, GradientReport

PAGE = Path(__file__).parents[3] / "docs" / "accuracy_matrix.md"
SAMPLE = ("forward_dynamics, spherical joint", "sphere on plane, PGS")


def test_the_committed_page_is_that_of_its_numbers() -> None:
    matrix = load_matrix(PAGE)
    assert matrix.cells and PAGE.read_text() == markdown(matrix)


def test_all_committed_cells_hold_their_bounds() -> None:
    assert [c.place for c in load_matrix(PAGE).wrong] == []


@pytest.mark.parametrize("part", SAMPLE)
def test_a_sample_holds_its_bounds_again(part: str) -> None:
    cells = all_parts()[part]()
    assert all(c.ok for c in cells), [c for c in cells if not c.ok]
    committed = {c.place: c for c in load_matrix(PAGE).cells}
    assert {c.place: c.bound for c in cells} == {c.place: committed[c.place].bound for c in cells}


def test_of_two_cells_at_a_place_the_worse_one_counts() -> None:
    good, bad, none = (Cell("t", "r", "c", error, 1e-7) for error in (1e-9, 1e-6, None))
    assert merge([good, bad]) == merge([bad, good]) == [bad]
    assert merge([bad, none]) == [none] and not none.ok


def test_a_cell_that_was_not_compared_is_not_right() -> None:
    """One comparison that could not be made is enough; one that is wrong says more."""
    right, wrong = Check("value", "a", 1e-9, 1e-7), Check("value", "b", 1e-3, 1e-7)
    missing = Check("value", "c", 0.0, 1e-7, "a jump", compared=False)
    (alone,) = cells_of(GradientReport([right, missing]), "row", "column", "things")
    assert alone.error is None and not alone.ok and alone.note == "a jump"
    (both,) = cells_of(GradientReport([right, missing, wrong]), "row", "column", "things")
    assert both.error == 1e-3


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It writes the page and its numbers, continues an interrupted run, and has exit code 1 if a cell is beyond its bound."""
    calls: list[str] = []

    def part(name: str, error: float):
        def run() -> list[Cell]:
            calls.append(name)
            if calls == ["a", "b"]:
                raise KeyboardInterrupt
            return [Cell("Derivative: things", name, "column", error, 1e-7)]

        return run

    monkeypatch.setattr(matrix, "all_parts", lambda: {"a": part("a", 1e-9), "b": part("b", 1e-6)})
    page = tmp_path / "page.md"
    with pytest.raises(KeyboardInterrupt):
        main(["--markdown", str(page)])
    assert not page.exists()
    assert main(["--markdown", str(page)]) == 1
    assert calls == ["a", "b", "b"] and "wrong: Derivative: things: b" in capsys.readouterr().out
    assert "| b | **1e-06** |" in page.read_text() and len(list(tmp_path.iterdir())) == 2
    assert load_matrix(page).wrong[0].row == "b"
    assert main(["--sample", "1"]) == 0
