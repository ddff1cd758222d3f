"""Interruptions: calls of compiled code that are interrupted by signals, exceptions, forks, and the end of the process.

Every work runs in a process of its own: `python -m benchmarks.faults.interrupts WORK TIMES SEED` interrupts it so many times, and
prints what happened. Memory that an interrupted call has let go is taken again and watched: nobody else may write to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import casadi as ca
import numpy as np
import torch

from benchmarks.faults.process import track
from benchmarks.measure.harness import Table
from costate.kernel import Kernel, ProgramBuilder

ANSWER = 0.2
"""Seconds of processor time after which an interrupted call must have raised: other processes do not count."""
LIMIT = 600
"""Seconds after which a process counts as hanging, on a busy machine, too."""
STEPS = 20_000


class StopError(Exception):
    """Raised by the handler of a signal, or sent to a thread."""


# --- works: calls of seconds ------------------------------------------------------------------------------------------------


def iteration(steps: int = STEPS, samples: int = 20_000) -> tuple[Kernel, torch.Tensor]:
    """A kernel that iterates x' = sin(x) + x / 2, and its input (samples, 4)."""
    x = ca.SX.sym("x", 4)
    b = ProgramBuilder("iteration")
    (end,), _, _ = b.scan(ca.Function("body", [x], [ca.sin(x) + x / 2]), steps, b.input("x", 4), [])
    b.output("y", end)
    kernel = b.kernel()
    kernel.code()  # compiled now: it is calls that are interrupted
    return kernel, torch.rand(samples, 4, dtype=torch.float64)


def kernel_on_two_threads() -> Callable[[], object]:
    torch.set_num_threads(2)
    kernel, x = iteration()
    return lambda: kernel(x=x)


def arrays() -> Callable[[], object]:
    torch.set_num_threads(1)
    kernel, x = iteration()
    return kernel.bind(x=x.numpy())


def roll_out(batch: int, steps: int, threads: int, substeps: int = 1, gradient: bool = False) -> Callable[[], object]:
    from costate.robot import load_robot
    from costate.sim import World

    torch.set_num_threads(threads)
    world = World(robots=[load_robot("ur5")], dt=1e-3, substeps=substeps)
    state = world.initial_state(batch, torch.float64).requires_grad_(gradient)
    controls = torch.zeros(steps, batch, world.nu, dtype=torch.float64)

    def end(length: int) -> torch.Tensor:
        return world.rollout(state, controls[:length]).square().sum()

    if not gradient:
        end(2)
        return lambda: world.rollout(state, controls)
    torch.autograd.grad(end(2), state)
    whole = end(steps)
    return lambda: torch.autograd.grad(whole, state, retain_graph=True)


WORKS: dict[str, Callable[[], Callable[[], object]]] = {
    "a kernel on two threads": kernel_on_two_threads,
    "a kernel with bound arrays": arrays,
    "a roll-out on two threads": lambda: roll_out(20_000, 100, 2),
    "a long roll-out on one thread": lambda: roll_out(8, STEPS, 1, substeps=50),
    "the gradient of a roll-out": lambda: roll_out(8, STEPS, 2, substeps=20, gradient=True),
}


# --- attacks: what interrupts a call at a moment ------------------------------------------------------------------------------


def interrupt(work: Callable[[], object], delay: float) -> float:
    """Ctrl-C. Return the processor time at which it came."""
    timer, at = _later(delay, lambda: os.kill(os.getpid(), signal.SIGINT))
    with contextlib.suppress(KeyboardInterrupt):
        timer.start()
        work()
    timer.join()
    return at[0]


def _later(delay: float, attack: Callable[[], object]) -> tuple[threading.Timer, list[float]]:
    """Return a timer that attacks, and a list to which it adds the processor time at which it did."""
    at: list[float] = []

    def act() -> None:
        at.append(time.process_time())
        attack()

    return threading.Timer(delay, act), at


def raising_handler(work: Callable[[], object], delay: float, again: float = 0.0) -> float:
    """A handler that raises; with `again`, over and over."""
    timer, at = _later(delay, lambda: signal.setitimer(signal.ITIMER_REAL, 1e-6, again))
    signal.signal(signal.SIGALRM, _raise)
    with contextlib.suppress(StopError):
        timer.start()
        _run(work)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    timer.join()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return at[0]


def _run(work: Callable[[], object]) -> None:
    work()


def _raise(_: int, frame: FrameType | None) -> None:
    """Raise inside of the work, not in what catches that."""
    while frame is not None:
        if frame.f_code is _run.__code__:
            raise StopError
        frame = frame.f_back


def cancelled_thread(work: Callable[[], object], delay: float) -> float:
    """An exception that another thread sends."""

    def run() -> None:
        with contextlib.suppress(StopError):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(delay)
    at = time.process_time()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(StopError))
    thread.join()
    return at


ATTACKS: dict[str, Callable[[Callable[[], object], float], float]] = {
    "Ctrl-C": interrupt,
    "a handler that raises": raising_handler,
    "a handler that raises every 10 ms": lambda work, delay: raising_handler(work, delay, 0.01),
    "an exception sent to the thread": cancelled_thread,
}


def attacked(name: str, times: int, seed: int) -> dict[str, list[float]]:
    """Interrupt a work at random moments; return the processor time to each answer [s], -1 where memory was overwritten."""
    chance, work = random.Random(seed), WORKS[name]()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found: dict[str, list[float]] = {}
    for attack in ATTACKS:
        for _ in range(times):
            at = ATTACKS[attack](work, chance.uniform(0.05, 0.3))
            seconds = time.process_time() - at
            found.setdefault(attack, []).append(seconds if _untouched() else -1.0)
    return found


def _untouched() -> bool:
    """Take memory, some of which was just freed, and watch whether anybody writes to it."""
    mine = [np.zeros(size) for size in (80_000, 80_000, 12 * 20_000 * 101, 12 * 8 * STEPS) for _ in range(2)]
    time.sleep(0.05)
    return not any(block.any() for block in mine)


# --- the study ----------------------------------------------------------------------------------------------------------------


def in_process(name: str, times: int, seed: int) -> dict[str, list[float]] | str:
    """Attack a work in a process of its own; return the answers, or what became of the process."""
    command = [sys.executable, "-m", "benchmarks.faults.interrupts", name, str(times), str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode:
        return f"ended with {done.returncode}: {done.stderr[-500:]}"
    return json.loads(done.stdout.splitlines()[-1])


def interrupts(times: int, seed: int) -> tuple[Table, int]:
    """Attack every work in every way."""
    rows, wrong = [], 0
    for name in track(list(WORKS), "interruptions"):
        found = in_process(name, times, seed)
        if isinstance(found, str):
            rows, wrong = [*rows, (name, "any", 0, 0, 0.0, found)], wrong + 1
            continue
        for attack, seconds in found.items():
            overwritten, middle = sum(s < 0 for s in seconds), float(np.median(seconds))
            sound = not overwritten and middle < ANSWER
            rows.append((name, attack, len(seconds), overwritten, round(1e3 * middle), "yes" if sound else "NO"))
            wrong += not sound
    note = (
        "Calls of compiled code of a second or more are interrupted at random moments. Memory that they have released is "
        f"allocated again and watched. The median of the processor time to the answer must be below {ANSWER} s."
    )
    columns = ("interrupted", "by", "times", "memory overwritten", "processor ms to the answer", "sound")
    return Table("Interrupted calls", columns, tuple(rows), note), wrong


if __name__ == "__main__":
    print(json.dumps(attacked(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
