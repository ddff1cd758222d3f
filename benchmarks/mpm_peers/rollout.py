"""A whole roll-out of particles with its gradient, in a process of its own: time, and memory that it takes.

python -m benchmarks.mpm_peers.rollout STEPS COUNT MEMORY

Prints a line of JSON: processor seconds of `run` and of its gradient (least of some), and by how many bytes the process grew from
after a tiny roll-out of the same kind, which loads the code of libraries, to its peak. MEMORY is the model's, such as "60 MB".
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.mpm_peers.costate_worker import model
from benchmarks.mpm_problem import MUSCLES, MpmProblem, problem
from costate.continuum.mpm.model import MpmModel

REPEATS = 4


def roll_out(p: MpmProblem, steps: int, memory: str) -> tuple[float, float]:
    """Return processor seconds of a roll-out, and of its gradient by the weights of sine waves that drive the muscles."""
    m = model(p)
    m = MpmModel(m.grid, m.bodies, m.dt, 1, m.gravity, m.sides, memory=memory)
    t = m.dt * torch.arange(steps, dtype=torch.float64)
    waves = torch.stack([torch.sin(20 * t + np.pi / 2 * k) for k in range(4)], -1)
    start = m.start(v=torch.as_tensor(p.v))
    found = []
    for _ in range(REPEATS):
        weights = torch.ones(MUSCLES, 4, dtype=torch.float64, requires_grad=True)
        begun = time.process_time()
        history = m.run(steps, start, act=torch.tanh(waves @ weights.T))
        half = time.process_time()
        history.x[-1, :, 0].mean().backward()
        found.append((half - begun, time.process_time() - half))
        del history
    return min(f for f, _ in found), min(b for _, b in found)


def kilobytes(name: str) -> int:
    """Return a number of this process's status (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def measure(steps: int, count: int, memory: str) -> dict[str, float]:
    """Return seconds and bytes of a roll-out."""
    torch.set_num_threads(1)
    roll_out(problem(2, 64), 2, memory)
    gc.collect()
    before = math.nan
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
        before = kilobytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    forward, backward = roll_out(problem(2, count), steps, memory)
    return {"forward": forward, "backward": backward, "bytes": 1024 * (kilobytes("VmHWM") - before)}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
