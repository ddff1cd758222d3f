"""Reliability: damaged inputs, processes killed at random moments, full disks, damaged caches, load.

python -m benchmarks.study_faults --markdown docs/reliability.md     (`make study-faults`)

Ends with exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.faults.fuzz import fuzz
from benchmarks.faults.kills import faults, kills
from benchmarks.faults.load import load
from benchmarks.measure.harness import Report, Table, machine, options, publish

SECTIONS = {"inputs": "Inputs", "kills": "Kills", "faults": "Faults", "load": "Load"}


def main() -> None:
    chosen = options(__doc__ or "", tuple(SECTIONS), _add_options)
    smoke, given = chosen.smoke, chosen.rest
    studies: dict[str, Callable[[], tuple[Sequence[Table], int]]] = {
        "inputs": lambda: _one(fuzz(150 if smoke else given.cases, given.log)),
        "kills": lambda: _one(kills(3 if smoke else given.kills)),
        "faults": lambda: _one(faults()),
        "load": lambda: load(smoke),
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


def _one(found: tuple[Table, int]) -> tuple[Sequence[Table], int]:
    return [found[0]], found[1]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=10_000, help="damaged inputs to read")
    parser.add_argument("--kills", type=int, default=50, help="of each kind of work")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="outcomes of the cases; sound ones in it are not run again"
    )


if __name__ == "__main__":
    main()
