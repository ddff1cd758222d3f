"""The report of an insertion run: what it says is what an evaluation finds, and the page shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file
from tests.browser import Browser, Page

from costate.cli.main import main
from costate.core.display import number
from costate.core.files import write_json
from costate.report.run_report import run_report
from costate.report.training import duration
from costate.tasks.insertion import Insertion, InsertionOptions
from costate.tasks.insertion.training import ALONE
from costate.train.controller import save_policy
from costate.train.evaluate import evaluate_policy
from costate.train.run import Checkpoint, Run
from costate.train.trainable import percent

POLICY = Path(__file__).parent.parent / "data" / "insertion" / "policy.safetensors"
"""A trained controller."""
EPISODES = 60


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run folder as training leaves it."""
    weights = {k.removeprefix("network."): v.float() for k, v in load_file(POLICY).items() if k.startswith("network.")}
    task = Insertion(InsertionOptions().unlimited())
    run = Run.create(tmp_path_factory.mktemp("runs") / "demo", task, ALONE, weights)
    run.save(Checkpoint(50, weights, {}, seconds=90.4, control_steps=1_230_000))
    terms = {"loss": 4.0, "position": 3.0, "tilt": 0.5, "start": 0.1, "error_mm": 2.0, "tilt_deg": 0.4}
    more = {"gradient_norm": 3.0, "seconds": 45.0}
    rows = [{"iteration": k} | terms | more | ({"success": 0.5} if k > 20 else {}) for k in (10, 20, 30, 40, 50)]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    curve = [{"horizon": 30, "seconds": 0.3, "success": 0.99}, {"horizon": 20, "seconds": 0.2, "success": 0.4}]
    write_json(run.path / "horizon.json", curve)
    save_policy(run)
    run.finish()
    return run


@pytest.fixture(scope="module")
def page(browser: Browser, run: Run) -> Page:
    assert main(["report", str(run.path), "--episodes", str(EPISODES)]) == 0
    page = browser.page((run.path / "report.html").as_uri(), (800, 600))
    page.wait("window.costateReplays.length === 3 && window.costateReplays.every((r) => r && r.frame !== undefined)")
    return page


@pytest.fixture(scope="module")
def plots(page: Page) -> dict[str, dict[str, Any]]:
    """Title -> data of each plot."""
    script = """Object.fromEntries([...document.querySelectorAll('figure.plot')].map((f) =>
        [f.querySelector('.title').textContent, JSON.parse(f.querySelector('script').textContent)]))"""
    return page.js(script)


def test_page_needs_no_network_and_has_no_errors(page: Page) -> None:
    assert len(page.requests) == 1 and page.requests[0].startswith("file:")
    assert page.errors == []


def test_figures_are_those_of_an_evaluation(page: Page, run: Run) -> None:
    found = evaluate_policy(run.task, run.policy, EPISODES).metrics
    facts = page.js("[...document.querySelectorAll('.facts div')].map((d) => d.innerText.split('\\n')[0])")
    assert facts[0] == percent(found.success)
    assert facts[1] == f"{found.error_mean:.3g} mm"
    assert facts[2] == f"{found.error_95:.3g} mm"
    assert facts[3:5] == ["1 min 30 s", "1.23 M"]
    table = page.js("document.querySelector('table').innerText")
    assert re.search(rf"position error: worst\t{found.error_worst:.3g} mm\t.*\t0.5 mm", table)
    names = "trained", "before training", "weights at zero", "allowed"
    assert "\t".join(("", *names)) in table
    assert found.success > 0.5, "the controller should be a trained one"


def test_histogram_holds_all_episodes(plots: dict[str, dict[str, Any]]) -> None:
    plot = next(data for title, data in plots.items() if title.startswith("Error,"))
    assert sum(y for s in plot["series"] for y in s["y"] if y is not None) == EPISODES


def test_episodes_are_the_best_the_median_and_the_worst(page: Page, plots: dict[str, dict[str, Any]], run: Run) -> None:
    verdict = evaluate_policy(run.task, run.policy, EPISODES).verdict
    captions = page.js("[...document.querySelectorAll('figure:has(.replay) figcaption')].map((c) => c.textContent)")
    assert [c.split()[0] for c in captions] == ["Best", "Median", "Worst"]
    best = 1e3 * float(verdict.error[verdict.success].min())
    assert f"{number(best)} mm, success" in captions[0]
    curves = {s["name"]: s["y"] for s in plots["Distance of the bottle from its seat"]["series"]}
    assert curves["best"][30] == pytest.approx(best, rel=1e-4)
    assert all(curve[0] > 30 for curve in curves.values())  # mm, at the start


def test_joints_against_their_limits(page: Page, plots: dict[str, dict[str, Any]]) -> None:
    velocity = plots["Velocity as a share of the limit, median episode"]
    assert 0.2 < max(np.abs(s["y"]).max() for s in velocity["series"]) <= 1.001
    assert page.js("document.querySelectorAll('figure.plot text.level').length") >= 5


def test_training_and_horizon_are_there(plots: dict[str, dict[str, Any]]) -> None:
    assert [s["name"] for s in plots["Loss and its terms"]["series"]] == ["loss", "position", "tilt", "start"]
    assert plots["Success in new episodes"]["series"][0]["y"] == [50, 50, 50]
    assert plots["Success against horizon"]["x"] == [300, 200]


def test_replays_play_at_once_and_slowly(page: Page) -> None:
    page.wait("window.costateReplays[1].time > 0.02")
    assert page.js("window.costateReplays.every((r) => r.speed === 0.1)")
    page.js("window.costateReplays.forEach((r) => { r.playing = false; r.seek(0.4); })")
    page.wait("window.costateReplays.every((r) => r.time === 0.4 && r.frame === 40)")
    page.screenshot("insertion_report")


def test_no_episodes_are_refused(run: Run) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        run_report(run, 0)


@pytest.mark.parametrize(
    ("seconds", "said"), [(4.21, "4.2 s"), (59.4, "59 s"), (90.4, "1 min 30 s"), (719, "12 min"), (7500, "2 h 5 min")]
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said
