"""Tests under an emulator, which take hours: what was run is kept, and the next call goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure.harness import ROOT
from costate.scale.desk import versions

OUTCOME = re.compile(r"^(tests/\S+?\.py)(?:::.*)? (PASSED|FAILED|SKIPPED|ERROR)(?: |$)")
"""A line of pytest: file, test, outcome."""
UNREADABLE = re.compile(r"^ERROR (tests/\S+?\.py)( |$)")
"""The line about a file that could not be imported."""
MISSING = ("pinocchio", "mujoco", "pybullet", "jax")
"""Other engines, which are not fetched for the emulated Python: tests that import them are left out."""


class Journal:
    """Outcomes by file, of this version of the source."""

    def __init__(self, path: Path):
        self.path, self.source = path, versions()["source"]
        kept = json.loads(path.read_text()) if path.is_file() else {}
        self.files: dict[str, dict[str, int]] = kept["files"] if kept.get("source") == self.source else {}

    def add(self, file: str, counts: dict[str, int]) -> None:
        """Keep the outcomes of a file."""
        self.files[file] = counts
        self.path.write_text(json.dumps({"source": self.source, "files": self.files}, indent=1))

    def total(self, of: Sequence[str]) -> Counter[str]:
        """Return how many tests of some files had which outcome."""
        return sum((Counter(self.files[f]) for f in of if f in self.files), Counter())


def files(chosen: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the test files in folders and files, and those of them that need another engine."""
    found = [f for c in chosen for f in (sorted((ROOT / c).rglob("test_*.py")) if (ROOT / c).is_dir() else [ROOT / c])]
    needy = [f for f in found if re.search(rf"\b({'|'.join(MISSING)})\b", f.read_text())]
    return [str(f.relative_to(ROOT)) for f in found if f not in needy], [str(f.relative_to(ROOT)) for f in needy]


def run(
    command: Sequence[str], surroundings: dict[str, str], folder: Path, chosen: Sequence[str], minutes: float
) -> str:
    """Run tests, for a processor time at most; return what was found by this and by earlier calls."""
    wanted, needy = files(chosen)
    journal, seconds = Journal(folder / "tests.json"), 60 * minutes
    while (todo := [f for f in wanted if f not in journal.files]) and seconds > 0:
        seconds -= _session([*command, "pytest", *OPTIONS, *todo], surroundings, folder / "tests.log", journal, seconds)
    total = journal.total(wanted)
    text = ", ".join(f"{total[k]} {k}" for k in ("passed", "failed", "error", "skipped", "crashed") if total[k])
    text = f"{text or 'none'} in {len([f for f in wanted if f in journal.files])} of {len(wanted)} files"
    return f"{text}; {len(needy)} more need another engine"


OPTIONS = (
    "-p",
    "no:cacheprovider",
    "-o",
    "addopts=--import-mode=importlib",
    "-v",
    "--tb=short",
    "--continue-on-collection-errors",
)


def _session(command: list[str], surroundings: dict[str, str], log: Path, journal: Journal, limit: float) -> float:
    """Run pytest once; keep what it says about files that it has come through. Return the processor time that it took [s]."""
    before, file, counts = _spent(), "", Counter[str]()
    with log.open("a") as kept:
        process = subprocess.Popen(
            ["sh", "-c", f'ulimit -t {limit:.0f}; exec "$@"', "sh", *command],
            cwd=ROOT, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            kept.write(line)
            kept.flush()
            if found := UNREADABLE.match(line):
                journal.add(found[1], {"error": 1})
            if not (found := OUTCOME.match(line)):
                continue
            if found[1] != file:
                if file:
                    journal.add(file, dict(counts))
                file, counts = found[1], Counter()
            counts[found[2].lower()] += 1
    code = process.wait()
    if code in (0, 1, 2, 5) and file:  # through, or files that could not be read
        journal.add(file, dict(counts))
    elif code not in (-signal.SIGXCPU, -signal.SIGKILL):  # not out of time
        todo = [c for c in command if c.startswith("tests/") and c not in journal.files]
        journal.add(file or todo[0], {**counts, "crashed": 1})
    return max(_spent() - before, 1.0)


def _spent() -> float:
    used = os.times()
    return used.children_user + used.children_system
