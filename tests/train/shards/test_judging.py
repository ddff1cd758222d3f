"""Judging in shards: the verdicts of workers are those of one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.scale.threads import ThreadWorker

from costate.scale.pool import Pool
from costate.train.evaluate import evaluate_policy
from costate.train.registry import find_task
from costate.train.robustness import robustness_of
from costate.train.run import Run
from costate.train.shards.judging import chunks, judged_by, packed, unpacked, varied

HOLD = Path(__file__).parent / "hold.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run.create(tmp_path_factory.mktemp("runs") / "run", find_task(HOLD))


def test_chunks_are_judged_as_in_one_process(run: Run) -> None:
    """1,100 episodes are three chunks; the verdict has a class and a field of the user's own."""
    here = evaluate_policy(run.task, run.policy, 1100).verdict
    with Pool(judged_by(run), 2, ThreadWorker) as pool:
        there = [unpacked(run.task, answer) for answer in pool.map(list(chunks(1100, "held out", 0)))]
    assert [len(v.success) for v in there] == [500, 500, 100]
    assert type(there[0]) is type(here)
    for name in ("success", "error", "speed"):
        assert torch.equal(torch.cat([getattr(v, name) for v in there]), getattr(here, name))


def test_cases_are_tried_as_in_one_process(run: Run) -> None:
    seen: list[str] = []
    here = robustness_of(run.task, run.policy, 50, watch=lambda name, _: seen.append(name))
    with Pool(judged_by(run), 2, ThreadWorker) as pool:
        there = robustness_of(run.task, run.policy, 50, workers=pool)
    assert seen == ["as usual"] == list(there)
    assert here["as usual"] == there["as usual"]


def test_verdicts_keep_their_columns(run: Run) -> None:
    verdict: Any = evaluate_policy(run.task, run.policy, 3).verdict
    verdict = replace(verdict, columns={"height [m]": torch.arange(3.0)})
    found = unpacked(run.task, packed(verdict))
    assert torch.equal(found.columns["height [m]"], torch.arange(3.0))


def test_an_unknown_variant_is_refused(run: Run) -> None:
    with pytest.raises(ValueError, match="task 'hold' has no variant 'wet'"):
        varied(run.task, "wet")
