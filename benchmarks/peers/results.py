"""The results of a run: one per peer and case, kept as JSON while a run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Result:
    """One number of one peer, or why there is none."""

    peer: str
    quantity: str
    subject: str
    batch: int = 1
    steps: int = 1
    threads: int = 1
    value: float | None = None
    """Seconds per sample (and step); of "memory": bytes; of "first_gradient" and "compile": seconds."""
    cores: float | None = None
    """Processor time over time: how many cores were busy."""
    values: tuple[float, ...] = ()
    """Numbers that were computed, to be compared with Costate's."""
    reason: str = ""
    """Reason why there is no value."""


@dataclass
class Results:
    """All results of a run, and what they depend on."""

    machine: dict[str, str]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    """Versions of the packages that count, per peer."""
    precision: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """Peers that were not measured, and why."""
    rows: list[Result] = field(default_factory=list)
    roofline: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False
    file: Path | None = None
    """Written after every result, so that an interrupted run keeps what it has."""

    def add(self, row: Result) -> None:
        self.rows.append(row)
        self.save()

    def find(self, quantity: str, **wanted: Any) -> list[Result]:
        """Rows of a quantity with the given fields, in order."""
        found = (r for r in self.rows if r.quantity == quantity)
        return [r for r in found if all(getattr(r, k) == v for k, v in wanted.items())]

    def one(self, peer: str, quantity: str, **wanted: Any) -> Result | None:
        return next(iter(self.find(quantity, peer=peer, **wanted)), None)

    def has(self, peer: str, like: Result) -> bool:
        """Tell whether a peer's result for the same case is there."""
        case = {k: getattr(like, k) for k in ("subject", "batch", "steps", "threads")}
        return self.one(peer, like.quantity, **case) is not None

    def ratio(self, peer: str, quantity: str, **wanted: Any) -> float | None:
        """Compute how many times longer the peer takes than Costate."""
        theirs, ours = self.one(peer, quantity, **wanted), self.one("costate", quantity, **wanted)
        if theirs is None or ours is None or theirs.value is None or not ours.value:
            return None
        return theirs.value / ours.value

    def save(self) -> None:
        if self.file:
            text = json.dumps({k: v for k, v in asdict(self).items() if k != "file"}, indent=1)
            temporary = self.file.with_name(self.file.name + ".part")
            temporary.write_text(text + "\n")
            os.replace(temporary, self.file)

    @staticmethod
    def load(file: Path) -> Results:
        given = json.loads(file.read_text())
        rows = [Result(**(row | {"values": tuple(row["values"])})) for row in given.pop("rows")]
        return Results(**given, rows=rows)


def peers_in(rows: Iterable[Result]) -> list[str]:
    """Names in order of appearance."""
    return list(dict.fromkeys(r.peer for r in rows))
