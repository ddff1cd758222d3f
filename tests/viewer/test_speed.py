"""The viewer stays smooth: what its server costs, as the benchmark measures it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parent.parent.parent / "benchmarks" / "bench_view.py"


def test_64_moving_robots_at_60_hertz_cost_less_than_half_a_core() -> None:
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--check", "--seconds", "3"], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
