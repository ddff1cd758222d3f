"""Cases are measured in turns; an interrupt keeps what there is; missing numbers have reasons."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.peers import page
from benchmarks.peers.peer import Peer
from benchmarks.peers.plan import Case, Plan
from benchmarks.peers.results import Results
from benchmarks.peers.runner import Runner
from benchmarks.peers.venvs import Environment

CASES = (Case("kinematics", "arm", 4), Case("forward_dynamics", "arm", 4), Case("inverse_dynamics", "arm", 4))


def run(peers: list[Peer], plan: Plan, say=lambda line: None, file: Path | None = None) -> Results:
    python = Path(sys.executable)
    environments = [
        *(Environment(p, python) for p in peers),
        Environment(Peer("dart", "DART", ("x",), ""), None, "no wheel"),
    ]
    return Runner(plan, environments, Results({"CPU": "any"}, file=file), say).run()


def test_in_turns(fakes: list[Peer], tmp_path: Path) -> None:
    results = run(fakes, Plan(CASES[::2], rounds=3, slice=0.0))
    calls = (tmp_path / "log").read_text().split()
    assert calls == ["costate", "mujoco"] * 4  # once each to warm up, then the rounds
    for name in ("costate", "mujoco"):
        row = results.one(name, "kinematics")
        assert row is not None and row.value is not None and 0.005 <= row.value < 0.5  # 20 ms for four samples
    failed = results.find("inverse_dynamics")
    assert [r.reason for r in failed] == ["ValueError: the fake cannot do this"] * 2
    assert results.absent == {"dart": "no wheel"}
    text = page.markdown(results)
    assert "the fake cannot do this" in text and "no wheel" in text and "0.0e+00" in text


def test_interrupt_keeps_what_there_is(fakes: list[Peer], tmp_path: Path) -> None:
    def say(line: str) -> None:
        if line.startswith("[2/3]"):
            raise KeyboardInterrupt

    file = tmp_path / "results.json"
    results = run(fakes, Plan(CASES, rounds=1, slice=0.0), say, file)
    assert results.interrupted
    kept = Results.load(file)
    assert kept.interrupted and [r.quantity for r in kept.rows] == ["kinematics"] * 2
    assert kept.rows == results.rows
    (tmp_path / "log").unlink()
    python = Path(sys.executable)
    Runner(Plan(CASES[:2], rounds=1, slice=0.0), [Environment(p, python) for p in fakes], kept, lambda line: None).run()
    assert [r.quantity for r in kept.rows] == ["kinematics"] * 2 + ["forward_dynamics"] * 2  # goes on where it was
    assert (tmp_path / "log").read_text().split() == ["costate", "mujoco"] * 2
