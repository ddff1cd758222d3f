"""Faults: processes killed at random moments, a full disk, a damaged cache, two trainings in one folder.

Every work is a short script in a process of its own. It is killed (SIGKILL) after a random part of the time it takes; then it is
run again, and must end with the very bytes that an undisturbed run ends with.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness import Table

from costate.learn.run import Run

TRAIN = """
import sys
from pathlib import Path
from costate.learn.plan import TrainOptions
from costate.learn.run import Run
from costate.learn.train import train
path = Path(sys.argv[1]) / "run"
options = TrainOptions(hidden=16, batch=8, iterations=40, interval=4, watch_interval=0, seed=2, threads=1)
train(Run.open(path) if path.exists() else Run.create(path, options))
"""
COMPILE = """
import sys, os
from pathlib import Path
os.environ["COSTATE_CACHE"] = sys.argv[1] + "/cache"
import torch
import costate as cs
from costate.model import load_model
robot = cs.Robot(load_model("ur5"))
x = [torch.linspace(-1, 1, 60, dtype=torch.float64).reshape(10, 6) * (k + 1) for k in range(3)]
found = robot.forward_dynamics(*x)
(Path(sys.argv[1]) / "result").write_bytes(found.numpy().tobytes())
"""
REPORT = """
import sys
from costate.report import Report
report = Report("A page")
for k in range(200):
    report.plot({"a": [((i * k) % 7) for i in range(2000)]}, title=str(k))
report.save(sys.argv[1] + "/report.html")
"""
WORKS = {
    "training": (TRAIN, "run/policy.safetensors"),
    "compiling": (COMPILE, "result"),
    "writing a report": (REPORT, "report.html"),
}
"""Script, and the file it must end with."""


def run(script: str, folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    # A session of its own: the processes that help to compile are killed with it, as in a crash of the machine.
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, start_new_session=True)


def killed(work: str, times: int) -> tuple[str, int, int, int]:
    """Kill a work so many times; how many kills hit it, how many times it then did not end with the same bytes."""
    script, result = WORKS[work]
    chance, hits, wrong = random.Random(work), 0, 0
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        expected, seconds = _undisturbed(script, result, base / "undisturbed")
        for k in range(times):
            folder = base / str(k)
            folder.mkdir()
            child = run(script, folder)
            try:
                child.wait(chance.uniform(0.2, 1.0) * seconds)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                hits += 1
            child.communicate()
            page = folder / result
            whole = not page.exists() or page.read_bytes() == expected
            again = run(script, folder)
            _, message = again.communicate()
            if not whole or again.returncode or page.read_bytes() != expected:
                wrong += 1
                print(f"{work}, kill {k}: {message.decode()[-500:] or 'other bytes'}", file=sys.stderr)
    return work, times, hits, wrong


def _undisturbed(script: str, result: str, folder: Path) -> tuple[bytes, float]:
    folder.mkdir()
    start = time.perf_counter()
    child = run(script, folder)
    _, message = child.communicate()
    if child.returncode:
        raise RuntimeError(message.decode())
    return (folder / result).read_bytes(), time.perf_counter() - start


def kills(times: int) -> tuple[Table, int]:
    share = {work: times // len(WORKS) + (k < times % len(WORKS)) for k, work in enumerate(WORKS)}
    rows = tuple(killed(work, count) for work, count in share.items())
    note = (
        "Each started anew, killed with SIGKILL after a random part of the time it takes, and run again in what is left. It must "
        "end with the very bytes of an undisturbed run, and never leave a part of the file it writes."
    )
    columns = ("killed while", "times", "of these before its end", "resumed wrongly or corrupt")
    return Table("Killed at random moments", columns, rows, note), sum(row[3] for row in rows)


# --- other faults -------------------------------------------------------------------------------------------------------

FULL_DISK = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"


def full_disk(folder: Path) -> str:
    """The training stops with an error that says so, and goes on once there is space."""
    limit = FULL_DISK + "resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, resource.RLIM_INFINITY))\n"
    child = run(limit + TRAIN, folder)
    _, message = child.communicate()
    if not child.returncode or b"cannot write" not in message:
        return f"ended with {child.returncode}: {message.decode()[-300:]}"
    return _same_as_undisturbed(TRAIN, "run/policy.safetensors", folder)


def full_disk_cache(folder: Path) -> str:
    """Code that cannot be kept is used all the same."""
    limit = FULL_DISK + "resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, resource.RLIM_INFINITY))\n"
    return _same_as_undisturbed(limit + COMPILE, "result", folder, COMPILE)


def damaged_cache(folder: Path) -> str:
    """Every entry with a changed byte, cut short or emptied: compiled anew."""
    run(COMPILE, folder).communicate()
    expected = (folder / "result").read_bytes()
    chance = random.Random(0)
    for round_ in range(3):
        for entry in (folder / "cache").glob("*.bin"):
            data = bytearray(entry.read_bytes())
            data[chance.randrange(len(data))] ^= 1
            entry.write_bytes([bytes(data), bytes(data[: len(data) // 2]), b""][round_])
        child = run(COMPILE, folder)
        _, message = child.communicate()
        if child.returncode or (folder / "result").read_bytes() != expected:
            return message.decode()[-300:] or "other bytes"
    return ""


def two_trainings(folder: Path) -> str:
    """The second is refused; what the first has written is whole."""
    first = run(TRAIN.replace("iterations=40", "iterations=100_000"), folder)
    while first.poll() is None and not (folder / "run" / "metrics.jsonl").exists():
        time.sleep(0.01)
    second = run(TRAIN, folder)
    _, message = second.communicate()
    os.killpg(first.pid, 9)
    first.communicate()
    if not second.returncode or b"in use" not in message:
        return f"the second ended with {second.returncode}: {message.decode()[-300:]}"
    rows = [row["iteration"] for row in Run.open(folder / "run").metrics()]
    return "" if rows == list(range(4, 4 * len(rows) + 1, 4)) else f"rows of metrics: {rows}"


def _same_as_undisturbed(script: str, result: str, folder: Path, plain: str = "") -> str:
    child = run(script, folder)
    _, message = child.communicate()
    if child.returncode:
        return message.decode()[-300:]
    with tempfile.TemporaryDirectory() as name:
        expected, _ = _undisturbed(plain or script, result, Path(name) / "undisturbed")
    return "" if (folder / result).read_bytes() == expected else "other bytes"


FAULTS: dict[str, Callable[[Path], str]] = {
    "disk full while training": full_disk,
    "disk full while compiling": full_disk_cache,
    "cache damaged: a bit changed, cut in half, emptied": damaged_cache,
    "two trainings in one folder": two_trainings,
}


def faults() -> tuple[Table, int]:
    rows = []
    for name, fault in FAULTS.items():
        with tempfile.TemporaryDirectory() as folder:
            problem = fault(Path(folder))
        rows.append((name, " ".join((fault.__doc__ or "").split()), problem or "yes"))
        print(f"{name}: {problem or 'as it must be'}", file=sys.stderr)
    wrong = sum(row[2] != "yes" for row in rows)
    return Table("Other faults", ("", "what must happen", "happened"), tuple(rows)), wrong
