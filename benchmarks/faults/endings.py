"""Endings: the process ends, or forks, in the middle of a call of compiled code. Each case is a script for a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.faults.process import track
from benchmarks.measure.harness import Table

LIMIT = 600
"""Seconds after which a process counts as hanging, on a busy machine, too."""

BEGIN = """
import atexit, os, signal, sys, threading, time
import numpy as np
import torch
from benchmarks.faults.interrupts import iteration
torch.set_num_threads(2)
kernel, x = iteration()
short, _ = iteration(500, 8)
x_wide = x[:8].repeat(2500, 1)  # enough for two threads
expected = np.tile(short(x=x[:8]).y, (2500, 1))
def check():
    assert np.array_equal(short(x=x_wide).y.numpy(), expected)
    print("right", flush=True)
"""

ENDINGS: dict[str, tuple[str, int]] = {
    "the process ends while a daemon thread calls": (
        "threading.Thread(target=lambda: kernel(x=x), daemon=True).start(); time.sleep(0.3)",
        0,
    ),
    "the process ends while daemon threads call, and call again when that fails": (
        """
def call():
    while True:
        try: bound()
        except BaseException: pass
bound = kernel.bind(x=x.numpy())
for _ in range(3): threading.Thread(target=call, daemon=True).start()
time.sleep(0.3)
""",
        0,
    ),
    "the process ends while short calls go on in daemon threads": (
        """
y = x[0].numpy()
def call():
    while True: short.numpy(x=y)
for _ in range(3): threading.Thread(target=call, daemon=True).start()
time.sleep(0.3)
""",
        0,
    ),
    "the main thread ends before another that calls": (
        "threading.Thread(target=lambda: (time.sleep(0.3), check())).start()",
        1,
    ),
    "a call at exit": ("atexit.register(check)", 1),
    "a call at exit, after the threads were told to end": (
        "from costate.kernel.calls.threads import workers; atexit.register(check); atexit.register(workers().close)",
        1,
    ),
    "an interrupt ends the process": (
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nkernel(x=x)",
        0,
    ),
    "another thread forks during a call": (
        """
threading.Thread(target=lambda: kernel(x=x), daemon=True).start(); time.sleep(0.3)
child = os.fork()
if not child:
    check(); os._exit(0)
assert os.waitpid(child, 0)[1] == 0
check()
""",
        2,
    ),
    "the handler of a signal forks during a call": (
        """
children = []
def fork(*_):
    children.append(os.fork())
signal.signal(signal.SIGALRM, fork); signal.setitimer(signal.ITIMER_REAL, 0.3)
long, y = iteration(20_000)
try: long(x=y)
except RuntimeError as error:
    assert children == [0] and "forked in the middle of a call" in str(error)
    check(); os._exit(0)
assert children and os.waitpid(children[0], 0)[1] == 0
check()
""",
        2,
    ),
    "the handler of a signal calls the same kernel during a call": (
        """
def call(*_):
    check(); signal.setitimer(signal.ITIMER_REAL, 0.02)
long, y = iteration(2000)
a = long(x=y).y.numpy()
signal.signal(signal.SIGALRM, call); signal.setitimer(signal.ITIMER_REAL, 0.02)
b = long(x=y).y.numpy()
signal.signal(signal.SIGALRM, signal.SIG_IGN)
assert np.array_equal(a, b)
""",
        1,
    ),
    "no thread can be started": (
        """
from unittest.mock import patch
with patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
    check()
""",
        1,
    ),
    "a hook raises in a backward pass": (
        """
leaf = x_wide.clone().requires_grad_()
leaf.register_hook(lambda g: 1 / 0)
for _ in range(5):
    try: short(x=leaf).y.sum().backward()
    except ZeroDivisionError: pass
check()
""",
        1,
    ),
}
"""Name -> the script, and how often it must at least find the right result. It must end, with exit code 0."""


def problem(name: str) -> str:
    """Run a case; describe what is not as it must be."""
    script, checks = ENDINGS[name]
    begun = time.monotonic()
    try:
        done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"hangs for {time.monotonic() - begun:.0f} s"
    if done.returncode or "Error" in done.stderr:
        return f"ended with {done.returncode}: {done.stderr[-500:]}"
    return "" if done.stdout.count("right") >= checks else "the result is missing"


def endings() -> tuple[Table, int]:
    """Run all cases."""
    found = [(name, problem(name)) for name in track(list(ENDINGS), "endings")]
    rows = tuple((name, "yes" if not why else f"NO: {why}") for name, why in found)
    return Table("Ends and forks during calls", ("", "sound"), rows), sum(bool(why) for _, why in found)
