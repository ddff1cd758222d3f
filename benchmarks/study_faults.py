"""Reliability: damaged and hostile files, odd robots, strangers at the viewer, interrupted calls, kills, full disks, load.

python -m benchmarks.study_faults --markdown docs/reliability.md     (`make study-faults`)

Ends with exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.faults.endings import endings
from benchmarks.faults.fuzz import fuzz
from benchmarks.faults.held_memory import held_memory
from benchmarks.faults.hostile import hostile
from benchmarks.faults.interrupts import interrupts
from benchmarks.faults.kills import faults, kills
from benchmarks.faults.load import load
from benchmarks.faults.pages import pages
from benchmarks.faults.strangers import strangers
from benchmarks.measure.harness import Report, Table, machine, options, publish

SECTIONS = {
    "inputs": "Inputs",
    "files": "Files that ask for too much",
    "robots": "Other people's robots",
    "pages": "Pages",
    "interrupts": "Interruptions",
    "kills": "Kills",
    "faults": "Faults",
    "load": "Load",
}


def main() -> None:
    chosen = options(__doc__ or "", tuple(SECTIONS), _add_options)
    smoke, given = chosen.smoke, chosen.rest
    studies: dict[str, Callable[[], tuple[Sequence[Table], int]]] = {
        "inputs": lambda: _all(fuzz(50 if smoke else given.cases, given.log)),
        "files": lambda: _all(hostile(2 if smoke else given.hostile, given.seed)),
        "robots": lambda: _all(strangers(*((5, given.seed, 1, 30) if smoke else (200, given.seed, 2)))),
        "pages": lambda: _all(pages(8 if smoke else 200, given.seed)),
        "interrupts": lambda: _all(interrupts(1 if smoke else 10, given.seed), endings()),
        "kills": lambda: _all(kills(3 if smoke else given.kills)),
        "faults": lambda: _all(faults()),
        "load": lambda: _more(load(smoke), held_memory(1 if smoke else 5, 300, given.seed)),
    }
    tables: list[Table] = []
    wrong = 0
    for name in chosen.only:
        found, bad = studies[name]()
        tables, wrong = [*tables, *found], wrong + bad
        if chosen.markdown:
            command = f"python -m benchmarks.study_faults --only {name}`, or all of it: `make study-faults"
            Report(SECTIONS[name], command, machine(), tuple(found)).save_markdown(chosen.markdown)
    publish(Report("Reliability", "make study-faults", machine(), tuple(tables)), replace(chosen, markdown=None))
    sys.exit(1 if wrong else 0)


def _all(*found: tuple[Table, int]) -> tuple[Sequence[Table], int]:
    return [table for table, _ in found], sum(wrong for _, wrong in found)


def _more(found: tuple[list[Table], int], more: tuple[Table, int]) -> tuple[Sequence[Table], int]:
    return [*found[0], more[0]], found[1] + more[1]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=10_000, help="damaged inputs of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of what is made at random, but for damaged inputs")
    parser.add_argument("--hostile", type=int, default=40, help="hostile files of each kind")
    parser.add_argument("--kills", type=int, default=50, help="of each kind of work")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="outcomes of the cases; sound ones in it are not run again"
    )


if __name__ == "__main__":
    main()
