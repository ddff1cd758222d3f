"""Reliability: damaged inputs, processes killed at random moments, full disks, damaged caches, load.

python benchmarks/study_faults.py --markdown docs/reliability.md     (`make study-faults`)

Ends with exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import sys
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
    for table in tables if chosen.markdown else ():
        _page(chosen.markdown)
        Report(table.title, "make study-faults", machine(), (table,)).save_markdown(chosen.markdown)
    publish(Report("Reliability", "make study-faults", machine(), tuple(tables)), _without_page(chosen))
    sys.exit(1 if wrong else 0)


def _page(file: Path | None) -> None:
    if file and not file.exists():
        file.write_text(
            "# Reliability\n\nWhat happens when things go wrong. Every table is written by `make study-faults`.\n"
        )


def _without_page(chosen):
    from dataclasses import replace

    return replace(chosen, markdown=None)


if __name__ == "__main__":
    main()
