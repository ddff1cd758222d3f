"""The process that measures throughput."""

import json
import subprocess
import sys

from benchmarks.bench_throughput import WORKER, Case, Worker


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
