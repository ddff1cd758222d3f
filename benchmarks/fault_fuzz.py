"""Fuzzing: damaged inputs read in a process of their own, so that a crash or a hang is a result and not the end."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path

from fault_inputs import KINDS, Outcome
from harness import Table

WORKER = Path(__file__).parent / "fault_worker.py"
HANG = 10.0
"""Seconds after which reading counts as hanging."""


class Reader:
    """The process that reads; started anew when it is lost."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def read(self, kind: str, number: int) -> Outcome:
        process = self._running()
        assert process.stdin
        process.stdin.write(f"{kind} {number}\n")
        process.stdin.flush()
        line = self._line(HANG)
        if line is None:
            process.kill()
            return Outcome(kind, f"case {number}", "hang")
        if not line:
            return Outcome(kind, f"case {number}", "crash", f"exit code {process.wait()}")
        return Outcome(**json.loads(line))

    def close(self) -> None:
        if self.process and self.process.stdin:
            self.process.stdin.close()
            self.process.wait()

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, str(WORKER)]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
            if (self._line(300) or "").strip() != "ready":
                raise RuntimeError(f"{WORKER} did not start; run it by hand to see why")
        return self.process

    def _line(self, seconds: float) -> str | None:
        """The next line; nothing at the end of the process, None if it takes too long."""
        assert self.process and self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else None


def fuzz(cases: int) -> tuple[Table, list[Outcome]]:
    """Read that many damaged inputs; the table, and what was not as it must be."""
    reader, rows, wrong = Reader(), [], []
    for kind in KINDS:
        count: Counter[str] = Counter()
        for number in range(-(-cases // len(KINDS))):
            outcome = reader.read(kind, number)
            count[outcome.result] += 1
            if not outcome.sound:
                wrong.append(outcome)
                print(f"{kind} {number}: {outcome}", file=sys.stderr)
        good = count["answer"], count["error"]
        bad = count["crash"], count["hang"], count["accepted"] + count["broken promise"], count["unclear error"]
        rows.append((NAMES[kind], count.total(), *good, *bad))
    reader.close()
    columns = ("", "read", "an answer", "a clear error", "crash", "hang over 10 s", "wrongly accepted", "unclear error")
    return Table("Damaged inputs", columns, tuple(rows), NOTE), wrong


NAMES = {"urdf": "URDF files", "mjcf": "MJCF files", "run": "run folders"}
NOTE = (
    "Bytes changed, cut out and repeated; elements and values deleted, moved, swapped, replaced; files cut short or removed. "
    "An answer must keep its promises: a model finite, with rotations that are rotations and masses that are not negative; weights "
    "those that were written, bit for bit. An error must be a ValueError or OSError that names the file. Damage that cannot be "
    "right (a mass of -1, a ring of links, half a file) must be refused."
)
