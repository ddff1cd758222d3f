"""Tables of the study of baselines, and the process that measures throughput."""

import json
import subprocess
import sys

from benchmarks.bench_throughput import WORKER, Case, Worker
from benchmarks.study_baselines import Curve, judge_of, table
from costate.train.registry import find_task


def _curve(source: str, method: str, seed: int, steps: list[int], returns: list[float]) -> Curve:
    points = [
        {"minutes": k + 1.0, "steps": s, "return": r} for k, (s, r) in enumerate(zip(steps, returns, strict=True))
    ]
    return Curve("hopper_v5", source, method, seed, 2.0, points)


def test_returns_at_equal_steps_are_those_of_the_last_look_before():
    curves = [
        _curve("costate", "ppo", 0, [1000, 4000], [10, 50]),
        _curve("costate", "ppo", 1, [900, 4200], [20, 70]),
        _curve("gymnasium", "sac", 0, [100, 1000], [5, 300]),
    ]
    rows = {(row[1], row[2]): row for row in table(curves).rows}
    assert rows["costate", "PPO"] == ("hopper_v5", "costate", "PPO", 2, "2", "4,100", "60", "1,000", "15")
    assert rows["gymnasium", "SAC"][-3:] == ("300", "1,000", "300")


def test_policies_of_gymnasiums_tasks_are_judged_there():
    assert judge_of(find_task("hopper_v5"), "costate") == "gymnasium"
    assert judge_of(find_task("hopper"), "costate") == "costate"


def test_a_worker_counts_steps():
    worker = Worker(Case("cartpole", "", "costate", "costate/Cartpole-v0", 4), sys.executable)
    try:
        assert not worker.error
        told = worker.measure(0.01)
        assert told["steps"] % 4 == 0 and told["steps"] > 0 and told["wall"] >= 0.01
    finally:
        worker.stop()


def test_a_missing_engine_is_named():
    done = subprocess.run(
        [sys.executable, "-S", str(WORKER), "brax", "ant:spring", "4", "1"], capture_output=True, text=True, timeout=60
    )
    assert "ModuleNotFoundError" in json.loads(done.stdout)["error"]
