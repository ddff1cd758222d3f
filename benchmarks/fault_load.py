"""Load: many kernels at once, a long loop, and many processes that want the same kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from harness import Table

SAME = """
import sys, torch
import costate as cs
from costate.model import load_model
robot = cs.Robot(load_model("ur5"))
x = [torch.linspace(-1, 1, 60, dtype=torch.float64).reshape(10, 6) * (k + 1) for k in range(3)]
print(robot.forward_dynamics(*x).numpy().tobytes().hex())
"""
MANY = """
import json, sys, time
import casadi as ca, torch
from costate.kernel import Kernel
count, kernels, start = int(sys.argv[1]), [], time.perf_counter()
x, X = ca.SX.sym("x", 3), torch.linspace(0, 1, 30, dtype=torch.float64).reshape(10, 3)
for k in range(count):
    kernels.append(Kernel(f"k{k}", {"x": x}, {"y": ca.sin((k + 1) * x) * x}))
    kernels[-1](x=X)
wrong = sum(not torch.allclose(f(x=X).y, torch.sin((k + 1) * X) * X, rtol=1e-12) for k, f in enumerate(kernels))
rss = int(open("/proc/self/statm").read().split()[1]) * 4096
print(json.dumps([wrong, time.perf_counter() - start, rss]))
"""
LOOP = """
import gc, json, sys, time
import numpy as np, torch
import costate as cs
from costate.model import load_model
robot, seconds = cs.Robot(load_model("ur5")), float(sys.argv[1])
def rss(): return int(open("/proc/self/statm").read().split()[1]) * 4096
rows, calls, begin = [], 0, time.perf_counter()
while time.perf_counter() - begin < seconds:
    for batch in (1, 17, 64, 301):
        x = [torch.randn(batch, 6, dtype=torch.float64, requires_grad=True) for _ in range(3)]
        robot.forward_dynamics(*x).square().sum().backward()
        robot.mass_matrix(x[0].detach())
        calls += 1
    if calls % 400 == 0:
        gc.collect()
        rows.append((calls, rss()))
print(json.dumps(rows))
"""


def _script(script: str, *arguments: str, cache: str) -> subprocess.Popen[str]:
    environment = os.environ | {"COSTATE_CACHE": cache, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], env=environment, stdout=pipe, stderr=pipe, text=True
    )


def _answer(process: subprocess.Popen[str]) -> str:
    out, message = process.communicate()
    if process.returncode:
        raise RuntimeError(message)
    return out.strip().splitlines()[-1]


def same_kernel(processes: int = 8) -> tuple[str, str, bool]:
    """They start with an empty cache at the same time."""
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        answers = {_answer(p) for p in [_script(SAME, cache=cache) for _ in range(processes)]}
        left = [name for name in os.listdir(cache) if not name.endswith(".bin")]
    sound = len(answers) == 1 and not left
    found = f"{len(answers)} distinct result, {len(left)} files left over, {time.perf_counter() - start:.1f} s"
    return f"{processes} processes compile the same kernel at once", found, sound


def many_kernels(count: int) -> tuple[str, str, bool]:
    import json

    with tempfile.TemporaryDirectory() as cache:
        wrong, seconds, rss = json.loads(_answer(_script(MANY, str(count), cache=cache)))
    found = f"{wrong} wrong, {seconds:.0f} s with an empty cache, {rss / 2**20:.0f} MB resident"
    return f"{count:,} kernels alive in one process", found, wrong == 0


GROWTH = 32.0
"""Bytes per call that may be measured where nothing grows: the allocator's steps over the calls of the loop."""


def long_loop(seconds: float) -> tuple[str, str, bool]:
    import json

    with tempfile.TemporaryDirectory() as cache:
        rows = np.array(json.loads(_answer(_script(LOOP, str(seconds), cache=cache))), float)
    late = rows[len(rows) // 3 :]  # the first third fills the pools of allocators
    slope = float(np.polyfit(late[:, 0], late[:, 1], 1)[0])
    calls = int(rows[-1, 0])
    found = f"{slope:+.1f} bytes per call over {calls:,} calls, {late[-1, 1] / 2**20:.0f} MB resident"
    return f"values and gradients of changing batch sizes for {seconds:.0f} s", found, slope < GROWTH


def load(smoke: bool) -> tuple[Table, int]:
    rows = [same_kernel(), many_kernels(50 if smoke else 1000), long_loop(10 if smoke else 120)]
    table = tuple((what, found, "yes" if sound else "NO") for what, found, sound in rows)
    return Table("Load", ("", "found", "sound"), table), sum(not row[2] for row in rows)
