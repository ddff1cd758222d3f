"""Tools of all benchmarks: fair timing on a noisy machine, facts about the machine, and tables as Markdown and JSON."""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.measure.table import Table, machine
from costate.core.tensors import threads

__all__ = [
    "ROOT",
    "Options",
    "Report",
    "Table",
    "environment",
    "interleaved",
    "machine",
    "once",
    "options",
    "publish",
    "threads",
]

ROOT = Path(__file__).parents[2]
"""Folder of the repository, in which `python -m benchmarks.NAME` runs."""
_START = time.monotonic()


Clock = Callable[[], float]
"""Function that returns a time [s]."""


def interleaved(
    cases: Mapping[str, Callable[[], Any]],
    rounds: int = 15,
    slice_seconds: float = 0.01,
    clock: Clock = time.perf_counter,
) -> dict[str, float]:
    """Seconds per call: the best of several rounds.

    Every round runs every case for about slice_seconds, one after the other, so that a burst of other work on the machine
    hits all of them, and the best round of each is one without. clock: wall time, or `time.process_time`, which does not count
    what others do.
    """
    number = {name: _calls_for(run, slice_seconds) for name, run in cases.items()}
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, run in cases.items():
            best[name] = min(best[name], _seconds(run, number[name], clock))
    return best


def once(run: Callable[[], Any]) -> float:
    """Seconds of a single call."""
    return _seconds(run, 1)


def _seconds(run: Callable[[], Any], number: int, clock: Clock = time.perf_counter) -> float:
    start = clock()
    for _ in range(number):
        run()
    return (clock() - start) / number


def _calls_for(run: Callable[[], Any], seconds: float) -> int:
    run()
    return max(1, int(seconds / max(min(_seconds(run, 1) for _ in range(3)), 1e-9)))


@dataclass(frozen=True)
class Report:
    """All tables of one benchmark."""

    section: str
    command: str
    """Command that measures this again."""
    machine: dict[str, str]
    tables: tuple[Table, ...]

    def markdown(self) -> str:
        facts = "; ".join(f"{key} {value}" for key, value in self.machine.items())
        head = f"## {self.section}\n\n`{self.command}`\n\nMeasured on: {facts}."
        return "\n\n".join([head, *(t.markdown() for t in self.tables)]) + "\n"

    def save_json(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    def save_markdown(self, file: Path) -> None:
        """Replace this section of a page, or append it."""
        page = file.read_text() if file.exists() else "# Benchmarks\n"
        section = re.compile(rf"^## {re.escape(self.section)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
        text = self.markdown()
        if section.search(page):
            page = section.sub(lambda _: text + "\n", page)
        else:
            page = f"{page.rstrip()}\n\n{text}"
        file.write_text(page.rstrip() + "\n")


@dataclass(frozen=True)
class Options:
    """The options all benchmarks have."""

    smoke: bool
    json: Path | None
    markdown: Path | None
    only: Sequence[str]
    clock: Clock
    """What benchmarks of one thread measure with, where they can: wall time, or processor time on a busy machine."""
    rest: argparse.Namespace


def options(
    description: str, tables: Sequence[str], add: Callable[[argparse.ArgumentParser], Any] | None = None
) -> Options:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="small and quick: does it run at all?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the tables into their section of a page")
    parser.add_argument("--only", nargs="+", choices=tables, default=list(tables), help="only these tables")
    parser.add_argument(
        "--processor-time", action="store_true", help="count that, where one thread works: for a busy machine"
    )
    if add:
        add(parser)
    given = parser.parse_args()
    clock = time.process_time if given.processor_time else time.perf_counter
    return Options(given.smoke, given.json, given.markdown, given.only, clock, given)


def publish(report: Report, chosen: Options) -> None:
    """Print the tables and the time that they took, and write what was asked for."""
    minutes = (time.monotonic() - _START) / 60
    facts = {**report.machine, "took": f"{minutes:.1f} min"}
    if chosen.clock is time.process_time:
        facts["measured"] = "processor time, where one thread works"
    report = replace(report, machine=facts)
    print(report.markdown())
    if chosen.json:
        report.save_json(chosen.json)
    if chosen.markdown:
        report.save_markdown(chosen.markdown)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    """Environment variables, inside of a with block."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
