"""Fuzzing: damaged inputs read in a process of their own, so that a crash or a hang is a result and not the end.

The process is this file: `kind number` per line in, a line of JSON per case out.
"""

from __future__ import annotations

import json
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from benchmarks.faults.inputs import KINDS, Outcome, make_run, try_case
from benchmarks.faults.process import cpu_seconds, track
from benchmarks.measure.harness import ROOT, Table

WORKER = "benchmarks.faults.fuzz"
MOST_MB = 4096
"""Memory that reading may take beyond that of a process with all libraries loaded."""
HANG = 10.0
"""Seconds of processor time after which reading counts as hanging."""
STUCK = 120.0
"""Seconds on the clock after which it does too: a process that waits takes no processor time."""


class Reader:
    """The process that reads; started anew when it is lost."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def read(self, kind: str, number: int) -> Outcome:
        process = self._running()
        assert process.stdin
        process.stdin.write(f"{kind} {number}\n")
        process.stdin.flush()
        line = self._line_within(HANG)
        if line is None:
            process.kill()
            process.wait()
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
            command = [sys.executable, "-m", WORKER]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
            if (self._line(300) or "").strip() != "ready":
                raise RuntimeError(f"{WORKER} did not start; run it by hand to see why")
        return self.process

    def _line_within(self, cpu: float) -> str | None:
        """The next line; None if that takes more than so much processor time."""
        assert self.process
        begun, before = time.monotonic(), cpu_seconds(self.process.pid)
        while time.monotonic() - begun < STUCK and cpu_seconds(self.process.pid) - before < cpu:
            line = self._line(1.0)
            if line is not None:
                return line
        return None

    def _line(self, seconds: float) -> str | None:
        """The next line; nothing at the end of the process, None if it takes too long."""
        assert self.process and self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else None


class Log:
    """Outcomes by case, in a file: a study that was stopped goes on, and what went wrong is tried again."""

    def __init__(self, path: Path | None):
        self.path = path
        self.known: dict[tuple[str, int], Outcome] = {}
        for line in path.read_text().splitlines() if path and path.exists() else ():
            row = json.loads(line)
            number, outcome = row.pop("number"), Outcome(**row)
            if outcome.sound:
                self.known[outcome.kind, number] = outcome

    def add(self, number: int, outcome: Outcome) -> None:
        self.known[outcome.kind, number] = outcome
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps({"number": number} | asdict(outcome)) + "\n")


def fuzz(cases: int, log: Path | None = None) -> tuple[Table, int]:
    """Read that many damaged inputs of each kind. log: see `Log`.

    Returns the table, and how many did not end as they must.
    """
    reader, memory, rows, wrong = Reader(), Log(log), [], []
    for kind in KINDS:
        count: Counter[str] = Counter()
        for number in track(range(cases), KINDS[kind]):
            if (kind, number) not in memory.known:
                memory.add(number, reader.read(kind, number))
            outcome = memory.known[kind, number]
            count[outcome.result] += 1
            if not outcome.sound:
                wrong.append(outcome)
                print(f"{kind} {number}: {outcome}", file=sys.stderr)
        good = count["answer"], count["error"]
        bad = count["crash"], count["hang"], count["accepted"] + count["broken promise"], count["unclear error"]
        rows.append((KINDS[kind], count.total(), *good, *bad))
    reader.close()
    columns = ("", "read", "an answer", "a clear error", "crash", "hang over 10 s", "wrongly accepted", "unclear error")
    return Table("Damaged inputs", columns, tuple(rows), NOTE), len(wrong)


NOTE = (
    "Bytes changed, cut out and repeated; elements and values deleted, moved, swapped, replaced; files cut short or removed. "
    "An answer must be valid: a model must be finite, with proper rotations and no negative masses; weights must be those that "
    "were written, bit for bit; a policy must give a command, and a C header without a text of the file; a recording must be "
    "drawn. An error must be a ValueError or OSError that names the file. Damage that cannot be right (a mass of -1, a ring of "
    f"links, half a file) must be refused. Seconds are processor time; a reader that asks for more than {MOST_MB:,} MB fails."
)


def main() -> None:
    """Read what is asked for, one case after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder / "sound")
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MOST_MB * 2**20, resource.RLIM_INFINITY))
        print("ready", flush=True)
        for line in sys.stdin:
            kind, number = line.split()
            print(json.dumps(asdict(try_case(kind, int(number), folder))), flush=True)


if __name__ == "__main__":
    main()
