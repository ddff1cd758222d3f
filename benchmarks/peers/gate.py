"""The gate: how many times faster than a peer we must at least be, committed, with room for another machine and a busy one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure.table import Table
from benchmarks.peers.results import Results

FILE = Path(__file__).with_name("gate.json")
TOLERANCE = 0.5
"""Share of a committed ratio that must be reached: processors differ in how much they gain from vectors."""


@dataclass(frozen=True)
class Ratio:
    """Time of a peer over our time, for one case."""

    peer: str
    quantity: str
    subject: str
    batch: int
    steps: int
    ratio: float
    """Committed ratio."""


@dataclass(frozen=True)
class Verdict:
    ratio: Ratio
    found: float | None
    """Ratio that was measured; None if the peer was not."""

    @property
    def ok(self) -> bool:
        """A peer that was not measured proves nothing, and fails nothing."""
        return self.found is None or self.found >= TOLERANCE * self.ratio.ratio


def committed(file: Path = FILE) -> list[Ratio]:
    return [Ratio(**row) for row in json.loads(file.read_text())]


def peers(file: Path = FILE) -> tuple[str, ...]:
    return tuple(dict.fromkeys(r.peer for r in committed(file)))


def judge(results: Results, file: Path = FILE) -> list[Verdict]:
    return [Verdict(r, _found(results, r)) for r in committed(file)]


def _found(results: Results, r: Ratio) -> float | None:
    return results.ratio(r.peer, r.quantity, subject=r.subject, batch=r.batch, steps=r.steps, threads=1)


def table(verdicts: list[Verdict]) -> Table:
    rows = []
    for v in verdicts:
        r = v.ratio
        case = f"{r.quantity.replace('_', ' ')}, {r.subject}, batch {r.batch}"
        found = "not measured" if v.found is None else v.found
        rows.append((case, r.peer, r.ratio, TOLERANCE * r.ratio, found, "ok" if v.ok else "TOO SLOW"))
    columns = ("case", "peer", "committed", "at least", "found", "")
    return Table("Gate: time of the peer over ours", columns, tuple(rows))
