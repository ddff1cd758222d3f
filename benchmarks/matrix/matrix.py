"""The accuracy matrix: relative errors of gradients by function, joint, shape, contact model, integrator and parameter.

    python -m benchmarks.matrix --markdown docs/accuracy_matrix.md

Its parts (`robots.py`, `worlds.py`) are checks at fixed points; each gives some cells of some tables.
"""

from __future__ import annotations

import datetime
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.matrix.cell import Cell, Part
from benchmarks.matrix.robots import robot_parts
from benchmarks.matrix.worlds import world_parts
from costate.audit.audit import Watch, silent
from costate.scale.choose import Cluster, executor
from costate.scale.executor import Work
from costate.scale.message import Message

ALONE = Cluster()


@dataclass(frozen=True)
class Matrix:
    """Cells, and when and with what they were computed."""

    cells: Sequence[Cell]
    version: str
    date: str
    done: int
    """Parts that were computed."""
    total: int
    """Parts that there are."""

    @property
    def ok(self) -> bool:
        return not self.wrong

    @property
    def wrong(self) -> list[Cell]:
        return [c for c in self.cells if not c.ok]

    def tables(self) -> Iterator[tuple[str, list[Cell]]]:
        for name in dict.fromkeys(c.table for c in self.cells):
            yield name, [c for c in self.cells if c.table == name]

    def print(self) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table("table", "cells", "largest error", "bound", "where", "wrong", box=box.SIMPLE)
        for name, cells in self.tables():
            worst = max(cells, key=lambda c: c.share)
            where = f"{worst.row}, {worst.column}"
            numbers = (str(len(cells)), worst.shown, f"{worst.bound:.0e}", where)
            table.add_row(name, *numbers, str(sum(not c.ok for c in cells)))
        console = Console()
        console.width = max(console.width, 110)  # a file or pipe has 80, which would break names
        console.print(table)
        for c in self.wrong:
            print(f"  wrong: {c.table}: {c.row}, {c.column}: {c.shown}, bound {c.bound:.0e}; {c.note}")

    def save(self, path: Path) -> Path:
        """A page, and its numbers beside it as JSON."""
        from benchmarks.matrix.page import markdown

        head = {"version": self.version, "date": self.date, "done": self.done, "total": self.total}
        lines = ",\n".join(
            json.dumps(asdict(c)) for c in self.cells
        )  # a line per cell, for people who read differences
        path.with_suffix(".json").write_text(json.dumps(head)[:-1] + f', "cells": [\n{lines}\n]}}\n')
        path.write_text(markdown(self))
        return path


def load_matrix(path: Path) -> Matrix:
    """Load a matrix as it was saved. path: The page or the JSON."""
    data = json.loads(path.with_suffix(".json").read_text())
    return Matrix(**{**data, "cells": [Cell(**c) for c in data["cells"]]})


def all_parts() -> dict[str, Part]:
    return {**robot_parts(), **world_parts()}


class Parts(Work):
    """The parts of the matrix, for workers."""

    def __init__(self, given: Message):
        self.parts = all_parts()

    def shard(self, shard: Message) -> Message:
        return Message({"cells": [asdict(c) for c in self.parts[shard.note["part"]]()]})


def make_matrix(
    sample: int | None = None,
    path: Path | None = None,
    minutes: float = math.inf,
    watch: Watch = silent,
    where: Cluster = ALONE,
) -> Matrix:
    """Compute all parts, or so many evenly picked ones.

    Args:
        path: Of the page. Finished parts are kept beside it until all are done, so that an interrupted run goes on.
        minutes: Begin no more parts after this time.
        where: Who computes them.
    """
    from costate import __version__

    parts = all_parts()
    names = list(parts) if sample is None else [list(parts)[k * len(parts) // sample] for k in range(sample)]
    journal = None if path is None else path.with_suffix(".partial.jsonl")
    done, end = _read(journal), time.monotonic() + 60 * minutes
    todo = [n for n in names if n not in done]
    for name, cells in zip(watch(todo, "checking"), _computed(todo, end, where), strict=False):
        done[name] = cells
        _append(journal, name, cells)
    found = [name for name in names if name in done]
    if journal is not None and found == names:
        journal.unlink(missing_ok=True)
    cells = merge(cell for name in found for cell in done[name])
    return Matrix(cells, __version__, datetime.date.today().isoformat(), len(found), len(parts))


def _computed(names: Sequence[str], end: float, where: Cluster) -> Iterator[list[Cell]]:
    """Yield the cells of parts; none is begun after a time."""
    together = max(4 * where.workers, 1)
    with executor(Message({"work": "benchmarks.matrix.matrix:Parts"}), where) as workers:
        for start in range(0, len(names), together):
            if time.monotonic() > end:
                return
            shards = [Message({"part": name}) for name in names[start : start + together]]
            for answer in workers.map(shards):
                yield [Cell(**c) for c in answer.note["cells"]]


def merge(cells: Iterable[Cell]) -> list[Cell]:
    """One cell per place: the worst of those found for it."""
    found: dict[tuple[str, str, str], Cell] = {}
    for c in cells:
        old = found.get(c.place)
        found[c.place] = c if old is None or c.share > old.share else old
    return list(found.values())


def _read(journal: Path | None) -> dict[str, list[Cell]]:
    if journal is None or not journal.is_file():
        return {}
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return {line["part"]: [Cell(**c) for c in line["cells"]] for line in lines}


def _append(journal: Path | None, part: str, cells: Sequence[Cell]) -> None:
    if journal is not None:
        with journal.open("a") as file:
            file.write(json.dumps({"part": part, "cells": [asdict(c) for c in cells]}) + "\n")
