"""The report of a run of any task: no task of its own is needed for a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from costate.draw.recording import record
from costate.report.errors import error_histogram
from costate.report.report import Report
from costate.report.run_report import RunReport, run_report, with_points
from costate.tasks.reach_position import ReachOptions, ReachPosition
from costate.train.evaluate import evaluate_policy
from costate.train.run import Run

EPISODES = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run before its training, with some rows of metrics."""
    run = Run.create(tmp_path_factory.mktemp("runs") / "demo", ReachPosition(ReachOptions(steps=12, hold=3)))
    row = {"loss": 1.0, "way": 0.5, "goal": 0.5, "error": 80.0, "gradient_norm": 2.0, "seconds": 1.0}
    rows = [{"iteration": k} | row | ({"success": 0.5} if k > 10 else {}) for k in (10, 20, 30)]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def plots(page: str) -> dict[str, dict]:
    """Title -> data of each plot."""
    figures = re.findall(r'<figure class="plot".*?</figure>', page, re.DOTALL)
    found = [
        (re.search(r'class="title"[^>]*>([^<]*)<', f), re.search(r"<script[^>]*>(.*?)</script>", f, re.DOTALL))
        for f in figures
    ]
    return {title[1]: json.loads(data[1]) for title, data in found if title and data}


def test_the_page_says_what_an_evaluation_finds(run: Run) -> None:
    page = run_report(run, EPISODES).html()
    found = evaluate_policy(run.task, run.policy, EPISODES).metrics
    assert f"{found.error_mean:.3g} mm" in page and "A UR5 brings its tool to a random position." in page
    assert "fastest joint in the end [rad/s]" in page
    drawn = plots(page)
    assert [s["name"] for s in drawn["Loss and its terms"]["series"]] == ["loss", "way", "goal"]
    assert drawn["Errors, mean of the batch"]["series"][0]["y"] == [80, 80, 80]
    bars = next(data for title, data in drawn.items() if title.startswith("Error,"))
    assert sum(y for s in bars["series"] for y in s["y"] if y is not None) == EPISODES


def test_the_worst_episode_is_a_failure_with_the_largest_error(run: Run) -> None:
    report = RunReport(run, EPISODES)
    assert report.error[report.shown["worst"].number] == pytest.approx(report.error.max())
    assert report.shown["best"].marks.shape == (1, 3)


def test_marked_points_stand_where_they_are(run: Run) -> None:
    task = run.task
    state, point = task.world.initial_state(), torch.tensor([[0.3, 0.2, 0.1]])
    plain = record(task.world, state)
    marked = with_points(plain, point)
    placed = marked.motion.instances(0)[0]
    assert len(placed) == len(plain.motion.instances(0)[0]) + 1
    assert placed[-1, :, 3].tolist() == pytest.approx([0.3, 0.2, 0.1])
    assert with_points(plain, point[:0]) is plain


def test_errors_without_a_limit_have_one_colour() -> None:
    report = Report("errors")
    error_histogram(report, torch.linspace(0, 1, 50).numpy(), "rad")
    (data,) = plots(report.html()).values()
    assert len(data["series"]) == 1 and sum(data["series"][0]["y"]) == 50


def test_options_that_differ_from_their_defaults_are_told(run: Run, tmp_path: Path) -> None:
    rows = dict(RunReport(run, EPISODES).origins())
    assert rows["options of the task"] == "steps 12, hold 3"
