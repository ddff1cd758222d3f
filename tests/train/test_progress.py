"""What a training shows: lines or a live table, and TensorBoard's files."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from costate.tasks.insertion import Insertion, InsertionTraining
from costate.train.progress import Board, Screen
from costate.train.run import Run

ROW = {
    "iteration": 50,
    "loss": 1.25,
    "position": 0.75,
    "funnel": 0.5,
    "error_mm": 2.0,
    "tilt_deg": 0.1,
    "gradient_norm": 30.0,
    "clipped": 0.25,
    "steps_per_second": 123456.0,
    "success": 0.875,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.create(tmp_path_factory.mktemp("runs") / "run", Insertion, InsertionTraining(iterations=100, hidden=4))


def test_without_a_terminal_it_prints_lines(folder: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with Screen(folder) as screen:
        screen(ROW)
        quiet = {k: v for k, v in ROW.items() if k != "success"}
        screen(quiet | {"iteration": 51})  # too soon after the last line
        screen(quiet | {"iteration": 100})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for shown in ("50/100", "loss 1.25", "2.000 mm, 0.100 deg", "87.5 %", "25 % clipped", "123,456 control steps/s"):
        assert shown in lines[0]
    assert "left 0 s" in lines[1] and "87.5 %" in lines[1]


def test_on_a_terminal_it_shows_the_terms_too(folder: Run) -> None:
    screen, out = Screen(folder), io.StringIO()
    screen.console = Console(file=out, force_terminal=True, color_system=None, width=100)
    with screen:
        screen(ROW)
    for shown in ("50/100", "position 0.750  funnel 0.500", "87.5 %", "insertion, 40 steps"):
        assert shown in out.getvalue()


def test_time_left_is_by_the_pace_since_the_start(folder: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(folder)
    monkeypatch.setattr("time.monotonic", lambda: screen.begun + 10.0)
    assert screen.left({"iteration": 20}) == pytest.approx(40.0)
    screen.first = 10  # it was resumed there
    assert screen.left({"iteration": 20}) == pytest.approx(80.0)


def test_tensorboard_reads_what_was_written(folder: Run) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Board(folder) as board:
        for iteration in (25, 50):
            board(ROW | {"iteration": iteration, "loss": 1.0 / iteration})
    events = accumulator.EventAccumulator(str(folder.path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(25, pytest.approx(0.04)), (50, pytest.approx(0.02))]
    assert {"loss/position", "loss/funnel", "success", "error_mm"} <= set(events.Tags()["scalars"])


def test_without_tensorboard_it_says_so_once(
    folder: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with Board(folder) as board:
        board(ROW)
        board(ROW)
    assert capsys.readouterr().out.count("needs tensorboard: ") == 1
