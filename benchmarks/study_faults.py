"""Reliability: damaged inputs, processes killed at random moments, full disks, damaged caches, load.

python benchmarks/study_faults.py --markdown docs/reliability.md     (`make study-faults`)

Ends with exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from fault_fuzz import fuzz
from fault_kills import faults, kills
from fault_load import load
from harness import Report, Table, machine, options, publish

TABLES = ("inputs", "kills", "faults", "load")


def main() -> None:
    chosen = options(__doc__ or "", TABLES, lambda p: p.add_argument("--cases", type=int, default=10_000))
    tables: list[Table] = []
    wrong = 0
    if "inputs" in chosen.only:
        table, bad = fuzz(150 if chosen.smoke else chosen.rest.cases)
        tables, wrong = [*tables, table], wrong + len(bad)
    for name, study in (
        ("kills", lambda: kills(3 if chosen.smoke else 50)),
        ("faults", faults),
        ("load", lambda: load(chosen.smoke)),
    ):
        if name in chosen.only:
            table, bad = study()
            tables, wrong = [*tables, table], wrong + bad
    if chosen.markdown:
        _save(tables, chosen.markdown)
    publish(Report("Reliability", "make study-faults", machine(), tuple(tables)), replace(chosen, markdown=None))
    sys.exit(1 if wrong else 0)


def _save(tables: list[Table], file: Path) -> None:
    """A section per table, so that each can be measured again alone."""
    if not file.exists():
        file.write_text(
            "# Reliability\n\nWhat happens when things go wrong. Every table is written by `make study-faults`.\n"
        )
    for table in tables:
        Report(table.title, "make study-faults", machine(), (table,)).save_markdown(file)


if __name__ == "__main__":
    main()
