"""Faults: processes killed at random moments, a full disk, a damaged cache, two trainings in one folder.

Every work runs in a process of its own. It is killed (SIGKILL) after a random part of the processor time it takes; then it is run
again, and must end with the very bytes that an undisturbed run ends with.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.faults.process import Child, track
from benchmarks.faults.works import OPTIONS, WORKS, Work, check_training, train_policy, write_report
from benchmarks.measure.harness import Table
from costate.report import Report
from costate.tasks.insertion import Insertion
from costate.train.run import Run

AGAIN = 0.3
"""Share of the works that are killed once more when they go on."""


def killed(name: str, times: int) -> tuple[str, int, int, int, int]:
    """Kill a work so many times. Returns its name, kills, kills while it went on after one, works, works that went wrong."""
    work, chance = WORKS[name], random.Random(name)
    works = kills = again = wrong = 0
    with tempfile.TemporaryDirectory() as base:
        expected, seconds = undisturbed(work, Path(base) / "undisturbed")
        bar = track(range(times), f"kills while {name}")
        while kills < times:
            works += 1
            folder = Path(base) / str(works)
            folder.mkdir()
            hits, problem = _until_done(work, folder, chance, seconds, expected)
            for _ in range(hits):
                next(bar, None)
            kills, again, wrong = kills + hits, again + max(hits - 1, 0), wrong + bool(problem)
            if problem:
                print(f"{name}, work {works}: {problem}", file=sys.stderr)
    return name, kills, again, works, wrong


def _until_done(work: Work, folder: Path, chance: random.Random, seconds: float, expected: bytes) -> tuple[int, str]:
    """Count the kills, and describe what is not as it must be."""
    hits = 0
    while hits == 0 or chance.random() < AGAIN:
        child = Child(lambda: work.run(folder))
        if child.wait(chance.uniform(0.0, 1.0) * seconds):
            break
        time.sleep(chance.uniform(0.0, 0.005))  # or while it waits for the disk
        child.kill()
        child.words()
        hits += 1
        problem = _damage(work, folder, expected)
        if problem:
            return hits, problem
    return hits, _problem(work, folder, expected)


def _damage(work: Work, folder: Path, expected: bytes) -> str:
    """Check what a kill has left: the result is whole or not there, all else can be read."""
    try:
        work.check(folder)
    except Exception as error:
        return f"after a kill: {error}"
    result = folder / work.result
    return "" if not result.exists() or result.read_bytes() == expected else "after a kill: a part of the result"


def _problem(work: Work, folder: Path, expected: bytes) -> str:
    """Run it to its end."""
    child = Child(lambda: work.run(folder))
    words = child.words()
    child.wait()
    if child.code:
        return words[-500:]
    return "" if (folder / work.result).read_bytes() == expected else "other bytes"


def undisturbed(work: Work, folder: Path) -> tuple[bytes, float]:
    """Result and processor time of a run that nothing happens to."""
    folder.mkdir()
    child = Child(lambda: work.run(folder))
    words = child.words()
    child.wait()
    if child.code:
        raise RuntimeError(words)
    return (folder / work.result).read_bytes(), child.cpu


def kills(times: int) -> tuple[Table, int]:
    """So many of each work."""
    warm()
    rows = tuple(killed(name, times) for name in WORKS)
    note = (
        "Each job is started in an empty folder, killed with SIGKILL after a random part of the processor time it takes, and "
        "started again in the folder it left; three in ten of those are killed again. After every kill all files must be readable, "
        "and the result must be complete or absent; in the end it must have exactly the bytes of an undisturbed run. Training: 40 "
        "iterations with 10 checkpoints; the result is the policy. Compiling: the gradient of a UR5's forward dynamics in an empty "
        "cache, shared with a worker process; the result is its values. Writing a report: 40 plots."
    )
    columns = ("killed while", "kills", "of these, after a restart", "jobs", "resumed wrongly or corrupt")
    return Table("Killed at random moments", columns, rows, note), sum(row[-1] for row in rows)


def warm() -> None:
    """Compile and load here what all children need."""
    with tempfile.TemporaryDirectory() as folder:
        train_policy(Path(folder), replace(OPTIONS, iterations=1))


# --- other faults -------------------------------------------------------------------------------------------------------


def on_full_disk(work: Callable[[Path], None], folder: Path, size: int = 3_000) -> Child:
    """No file may become larger: writing fails in the middle, as on a full disk."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        work(folder)

    return Child(limited)


def full_disk(folder: Path) -> str:
    """The training stops with an error that says so, and goes on once there is space."""
    child = on_full_disk(train_policy, folder)
    words = child.words()
    child.wait()
    if not child.code or "cannot write" not in words:
        return f"ended with {child.code}: {words[-300:]}"
    check_training(folder)
    return _same(WORKS["training"], folder)


def full_disk_cache(folder: Path) -> str:
    """Code that cannot be kept is used all the same, with a warning."""
    work = WORKS["compiling"]
    child = on_full_disk(work.run, folder)
    words = child.words()
    child.wait()
    if child.code or "cannot be stored" not in words:
        return f"ended with {child.code}: {words[-300:]}"
    with tempfile.TemporaryDirectory() as base:
        expected, _ = undisturbed(work, Path(base) / "undisturbed")
    return "" if (folder / work.result).read_bytes() == expected else "other bytes"


def full_disk_report(folder: Path) -> str:
    """Writing a report stops with an error that says so; the report that was there is as it was."""
    path = Report("before").save(folder / "report.html")
    before = path.read_bytes()
    child = on_full_disk(write_report, folder)
    words = child.words()
    child.wait()
    if not child.code or "the one there is unchanged" not in words:
        return f"ended with {child.code}: {words[-300:]}"
    return "" if path.read_bytes() == before and list(folder.iterdir()) == [path] else "the report is not as it was"


def damaged_cache(folder: Path) -> str:
    """Every entry with a changed bit, cut in half, emptied: compiled anew."""
    work, chance = WORKS["compiling"], random.Random(0)
    Child(lambda: work.run(folder)).wait()
    expected = (folder / work.result).read_bytes()
    for round_ in range(3):
        entries = list((folder / "cache").glob("*.bin"))
        for entry in entries:
            data = bytearray(entry.read_bytes())
            data[chance.randrange(len(data))] ^= 1
            entry.write_bytes([bytes(data), bytes(data[: len(data) // 2]), b""][round_])
        problem = _problem(work, folder, expected)
        if problem or not entries:
            return problem or "there are no entries"
        work.check(folder)  # written anew, whole
    return ""


def two_trainings(folder: Path) -> str:
    """The second is refused by name; what the first has written is whole."""
    first = Child(lambda: train_policy(folder, replace(OPTIONS, iterations=100_000)))
    while not first.wait(first._used() + 0.01) and not (folder / "run" / "lock").exists():
        pass
    second = Child(lambda: train_policy(folder))
    words = second.words()
    second.wait()
    first.kill()
    if not second.code or f"{folder}/run is in use" not in words:
        return f"the second ended with {second.code}: {words[-300:]}"
    rows = [row["iteration"] for row in Run.open(folder / "run").metrics()]
    return "" if rows == list(range(4, 4 * len(rows) + 1, 4)) else f"rows of metrics: {rows}"


def trainings_at_once(folder: Path, processes: int = 6) -> str:
    """One has the folder; the others are refused in words, and leave it whole."""
    start = time.time() + 1.0

    def create() -> None:
        time.sleep(max(start - time.time(), 0))
        Run.create(folder / "run", Insertion, OPTIONS)

    children = [Child(create) for _ in range(processes)]
    said = [child.words() for child in children]
    refused = sum(
        "--resume" in words for child, words in zip(children, said, strict=True) if child.wait() and child.code
    )
    if refused != processes - 1:
        return f"{refused} were refused: {max(said, key=len)[-300:]}"
    Run.open(folder / "run").checkpoint()
    return "" if [p.name for p in folder.iterdir()] == ["run"] else "something was left behind"


def _same(work: Work, folder: Path) -> str:
    """Tell whether it goes on to the end of an undisturbed run."""
    with tempfile.TemporaryDirectory() as base:
        expected, _ = undisturbed(work, Path(base) / "undisturbed")
    return _problem(work, folder, expected)


FAULTS: dict[str, Callable[[Path], str]] = {
    "disk full while training": full_disk,
    "disk full while compiling": full_disk_cache,
    "disk full while writing a report": full_disk_report,
    "cache damaged": damaged_cache,
    "two trainings in one folder": two_trainings,
    "trainings started in one new folder at the same moment": trainings_at_once,
}


def faults() -> tuple[Table, int]:
    warm()
    rows = []
    for name in track(list(FAULTS), "other faults"):
        with tempfile.TemporaryDirectory() as folder:
            problem = FAULTS[name](Path(folder))
        rows.append((name, " ".join((FAULTS[name].__doc__ or "").split()), problem or "yes"))
        print(f"{name}: {problem or 'as it must be'}", file=sys.stderr)
    wrong = sum(row[2] != "yes" for row in rows)
    note = "A full disk is simulated by a limit on the size of files: writing fails in the middle."
    return Table("Other faults", ("", "what must happen", "happened"), tuple(rows), note), wrong
