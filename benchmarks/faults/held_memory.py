"""Held memory: kernels are linked while the process holds gigabytes, in an address space full of small holes.

`python -m benchmarks.faults.held_memory COUNT SEED` makes and drops so many kernels in a process of its own. The gigabytes are
only mapped, never touched.
"""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import sys
import tempfile

import casadi as ca
import torch

from benchmarks.measure.harness import Table
from costate.kernel import Kernel

LIMIT = 600
"""Seconds after which a process counts as hanging, on a busy machine, too."""
GIGABYTES = (3.0, 12.0)
"""Size of what is held below the holes, from and to."""
HOLES = 200
PAGE = mmap.PAGESIZE
NO_RESERVE = 0x4000
"""MAP_NORESERVE of Linux: address space alone."""


def hold(chance: random.Random) -> list[mmap.mmap]:
    """Leave holes of a few pages, which a small section fits into and a large one does not; map gigabytes below them."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    pieces = [mmap.mmap(-1, PAGE * chance.randint(1, 4), flags=flags, prot=mmap.PROT_READ) for _ in range(2 * HOLES)]
    for piece in pieces[::2]:
        piece.close()
    size = int(chance.uniform(*GIGABYTES) * 2**30) // PAGE * PAGE
    return [*pieces[1::2], mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)]


def kernel(ops: int) -> tuple[Kernel, torch.Tensor, torch.Tensor]:
    """Return a kernel with constants, vector functions and, if it is large, several object files; with an input, and its output."""
    x, X = ca.SX.sym("x", 10), torch.linspace(-1, 1, 130, dtype=torch.float64).reshape(13, 10)
    y, Y = x, X
    for k in range(ops // 40):
        y, Y = (
            ca.sin(y + 0.01 * (k + ops)) * x + ca.exp(-y * y),
            torch.sin(Y + 0.01 * (k + ops)) * X + torch.exp(-Y * Y),
        )
    return Kernel(f"of {ops}", {"x": x}, {"y": y}), X, Y


def linked(count: int, seed: int) -> None:
    """Make and drop kernels, some of which stay for a while; all must compute what torch computes."""
    chance = random.Random(seed)
    cases = [kernel(ops) for ops in (40, 400, 4000)]
    held: list[list[mmap.mmap]] = []
    alive: list[Kernel] = []
    for number in range(count):
        if number % 10 == 0:
            held.append(hold(chance))
            if len(held) > 4:
                held.pop(chance.randrange(4))
        base, x, y = chance.choice(cases)
        made = Kernel.of_recipe(base._recipe)
        torch.testing.assert_close(made(x=x).y, y, rtol=1e-9, atol=1e-12)
        alive.append(made)
        while len(alive) > 30:
            alive.pop(chance.randrange(len(alive)))
    print("right")


def problem(count: int, seed: int) -> str:
    """Run this in a process of its own; describe what is not as it must be."""
    command = [sys.executable, "-m", "benchmarks.faults.held_memory", str(count), str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT, env=os.environ | {"COSTATE_CACHE": folder}
            )
        except subprocess.TimeoutExpired:
            return "hangs"
    return "" if done.returncode == 0 and "right" in done.stdout else f"{done.returncode}: {done.stderr[-300:]}"


def held_memory(processes: int, count: int, seed: int) -> tuple[Table, int]:
    """Link kernels in some processes, each with holes of its own."""
    found = [problem(count, seed + k) for k in range(processes)]
    rows = ((processes, count, sum(map(bool, found)), "; ".join(filter(None, found)) or "yes"),)
    note = (
        f"{HOLES} holes of 1 to 4 pages, and {GIGABYTES[0]:.0f} to {GIGABYTES[1]:.0f} GB below them, anew after every 10 kernels. "
        "Kernels of one to several object files are linked, called, compared with torch, and dropped."
    )
    columns = ("processes", "kernels in each", "processes lost", "sound")
    return Table("Kernels linked while memory is held", columns, rows, note), sum(map(bool, found))


if __name__ == "__main__":
    linked(int(sys.argv[1]), int(sys.argv[2]))
