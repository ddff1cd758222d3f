"""Tables of the study of learning."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.study_learning import table


def _run(path: Path, seed: int, transfer: dict[str, Any] | None) -> Any:
    path.mkdir()
    if transfer:
        (path / "transfer.json").write_text(json.dumps(transfer))
    last = {"control_steps": 5000, "processor_seconds": 50.0, "return": 90.0}
    options, found = SimpleNamespace(seed=seed), {"return": 100.0 + seed, "success": 0.5}
    return SimpleNamespace(path=path, options=options, evaluation=found, metrics=lambda: [last])


def test_gymnasium_judges_its_own_tasks(tmp_path):
    there = {
        "gymnasium": {"mean": 1234.4, "std": 56, "least": 1000},
        "costate": {"mean": 1240, "std": 50, "least": 900},
    }
    found = table("ant_v5", "shac", [_run(tmp_path / "run", 3, there)])
    assert found.rows == ((3, "5,000", "50", "100", "103", "50.0 %", "1,234 +- 56", "1,000", "1,240 +- 50"),)
    assert len(found.columns) == len(found.rows[0])
    assert found.note.endswith("In gymnasium: 1,234.")


def test_other_tasks_have_no_such_columns(tmp_path):
    found = table("cartpole", "shac", [_run(tmp_path / str(k), k, None) for k in (0, 1)])
    assert found.columns[-1] == "success" and len(found.rows[1]) == len(found.columns) == 6
