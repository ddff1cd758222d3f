"""Load: many kernels at once, loops as long as a day, and many processes that want the same kernel."""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import casadi as ca
import numpy as np
import torch

from benchmarks.faults.kills import undisturbed, warm
from benchmarks.faults.process import Child, answer, resident, track
from benchmarks.faults.works import OPTIONS, WORKS, check_cache, compile_gradient
from benchmarks.measure.harness import Table
from costate.kernel import Kernel, link
from costate.kernel.machine.jit import LIBRARIES
from costate.model import load_model
from costate.robot import Robot
from costate.tasks.insertion import Insertion, InsertionTraining
from costate.train.run import Run
from costate.train.trainer import train

SECONDS = 45.0
"""Processor time of each loop."""
RESOLVED = 16 * 4096
"""Growth of memory [bytes] that the loops of a smoke run cannot tell from none."""
Samples = list[tuple[int, int]]
"""(events so far, bytes in memory)."""


def same_kernel(processes: int = 8) -> tuple[str, str, bool]:
    """They start with an empty cache at the same time."""

    def work() -> None:
        compiled = []
        original = link.compile_program
        link.compile_program = lambda *args: compiled.append(args[0]) or original(*args)  # type: ignore[assignment]
        compile_gradient(Path(folder))
        print(len(compiled))

    with tempfile.TemporaryDirectory() as folder:
        expected, _ = undisturbed(WORKS["compiling"], Path(folder) / "alone")
        children = [Child(work) for _ in range(processes)]
        compiles = sum(int(answer(c)) for c in children)
        check_cache(Path(folder))
        same = (Path(folder) / "result").read_bytes() == expected
        left = [name for name in os.listdir(f"{folder}/cache") if not name.endswith(".bin")]
        entries = len(os.listdir(f"{folder}/cache"))
    found = (
        f"results {'the same' if same else 'other'} as alone, {compiles} compilations, {entries} entry in the cache, "
        f"{len(left)} other files"
    )
    return f"{processes} processes compile the same kernel at once", found, same and not left and compiles <= processes


def many_kernels(count: int) -> tuple[str, str, bool]:
    def work() -> None:
        os.environ["COSTATE_CACHE"] = folder
        before, start = resident(), time.process_time()
        X = torch.linspace(0, 1, 30, dtype=torch.float64).reshape(10, 3)
        kernels = [small_kernel(k) for k in range(count)]
        for kernel in kernels:
            kernel(x=X)
        wrong = sum(not torch.allclose(f(x=X).y, torch.sin((k + 1) * X) * X, rtol=1e-12) for k, f in enumerate(kernels))
        print(json.dumps([wrong, time.process_time() - start, resident() - before]))

    with tempfile.TemporaryDirectory() as folder:
        wrong, seconds, size = json.loads(answer(Child(work)))
    found = f"{wrong} wrong; {1e3 * seconds / count:.0f} ms to compile and {size / count / 1024:.0f} KB each"
    return f"{count:,} kernels alive in one process", found, wrong == 0


def small_kernel(k: int) -> Kernel:
    x = ca.SX.sym("x", 3)
    return Kernel(f"k{k}", {"x": x}, {"y": ca.sin((k + 1) * x) * x})


# --- loops --------------------------------------------------------------------------------------------------------------


def call_loop(seconds: float) -> Samples:
    """Values and gradients of forward dynamics, and mass matrices, for batches of changing size."""
    robot, samples, calls = Robot(load_model("ur5")), Samples(), 0
    while time.process_time() < seconds:
        for batch in (1, 17, 64, 301):
            x = [torch.randn(batch, 6, dtype=torch.float64, requires_grad=True) for _ in range(3)]
            robot.forward_dynamics(x[0], x[1], x[2]).square().sum().backward()
            robot.mass_matrix(x[0].detach())
            calls += 3
        if calls % 1200 == 0:
            samples.append((calls, resident()))
    return samples


def training_loop(seconds: float) -> Samples:
    """Iterations of a training, with a row of metrics and a checkpoint after every 20."""
    samples = Samples()

    class EnoughError(Exception):
        pass

    def watch(row: dict) -> None:
        samples.append((row["iteration"], resident()))
        if time.process_time() > seconds:
            raise EnoughError

    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", Insertion, replace(OPTIONS, iterations=10_000_000, interval=20))
        try:
            train(run, watch)
        except EnoughError:
            return samples
    raise AssertionError("a training of ten million iterations has ended")


def kernel_loop(seconds: float) -> Samples:
    """Kernels compiled, called and dropped."""
    os.environ["COSTATE_CACHE"] = ""
    samples, count = Samples(), 0
    x = torch.ones(3, dtype=torch.float64)
    while time.process_time() < seconds:
        small_kernel(count)(x=x)
        count += 1
        if count % LIBRARIES == 0:  # LLVM keeps some kilobytes of each until its linker goes
            gc.collect()
            samples.append((count, resident()))
    return samples


def iterations_a_day() -> float:
    """Estimate the iterations of a training with the default options, from the processor time of a few."""
    options = InsertionTraining()
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(
            Path(folder) / "run", Insertion, replace(options, iterations=12, interval=4, watch_interval=0, threads=1)
        )
        at: list[float] = []
        train(run, lambda row: at.append(time.process_time()))
    return 86_400 / ((at[-1] - at[0]) / 8)


@dataclass(frozen=True)
class Loop:
    """Something that is done over and over."""

    run: Callable[[float], Samples]
    what: str
    a_day: Callable[[], float]


LOOPS = (
    Loop(call_loop, "calls, values and gradients; a day at 1 kHz", lambda: 86.4e6),
    Loop(training_loop, "training iterations; a day with the default batch", iterations_a_day),
    Loop(kernel_loop, "kernels compiled and dropped; one every 10 s", lambda: 8_640),
)


def long_loop(loop: Loop, smoke: bool) -> tuple[tuple[str | float, ...], bool]:
    """A row: the memory over the loop, and what the trend makes of it in a day.

    A loop of seconds resolves less: memory comes in pages, and a few of them would be many in a day. So in a smoke run a growth of
    no more than `RESOLVED` counts as none; all else is judged as in a long one.
    """
    rows = np.array(json.loads(answer(Child(lambda: print(json.dumps(loop.run(6.0 if smoke else SECONDS)))))), float)
    a_day = float(json.loads(answer(Child(lambda: print(loop.a_day())))))
    at = [rows[min(int(share * len(rows)), len(rows) - 1), 1] / 2**20 for share in (0.25, 0.5, 0.75, 1.0)]
    late = rows[len(rows) // 4 :]  # the first quarter fills the pools of allocators
    means = np.array(
        [block.mean(0) for block in np.array_split(late, min(8, len(late)))]
    )  # neighbours are not independent
    (slope, _), spread = np.polyfit(means[:, 0], means[:, 1], 1, cov=True)
    low, high = (slope + k * 2.45 * np.sqrt(spread[0, 0]) for k in (-1, 1))  # 95 % of Student's t, 6 degrees of freedom
    growth = f"{low * a_day / 2**20:+.1f} to {high * a_day / 2**20:+.1f}"
    # Flat: the trend is not distinguishable from none, or a day of it is less than a tenth of what is there.
    flat = low <= 0 or high * a_day < 0.1 * late[-1, 1] or (smoke and late[-1, 1] - late[0, 1] <= RESOLVED)
    return (loop.what, int(rows[-1, 0]), int(a_day), *at, growth, "yes" if flat else "NO"), flat


def load(smoke: bool) -> tuple[list[Table], int]:
    warm()
    rows = [same_kernel(), many_kernels(50 if smoke else 1000)]
    table = tuple((what, found, "yes" if sound else "NO") for what, found, sound in rows)
    loops = [long_loop(each, smoke) for each in track(LOOPS, "loops")]
    note = (
        "A day is extrapolated, because memory that is not freed accumulates per call, iteration or kernel and not per second. "
        f"Each loop takes {SECONDS:.0f} s of processor time. The table has its memory over that time, and the growth that a day's "
        "number of calls, iterations or kernels would cause, computed from the slope after the first quarter, with a 95 % "
        "confidence interval. Flat: the interval includes zero, or is below a tenth of the memory."
    )
    columns = ("loop", "in the loop", "in a day", "MB at 25 %", "50 %", "75 %", "100 %", "MB a day", "flat")
    tables = [
        Table("Many at once", ("", "found", "sound"), table),
        Table("Memory over a day", columns, tuple(row for row, _ in loops), note),
    ]
    return tables, sum(not sound for *_, sound in rows) + sum(not flat for _, flat in loops)
