"""Records of values: what the stages of a step hand on, and the programs inside a program that read all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeVar

from costate.kernel import ProgramBuilder
from costate.kernel.ir.program import Var

R = TypeVar("R")


def flat(record: Any) -> list[Var]:
    """Return the values of a record, one after the other. A record is a value, a tuple of records, or a dataclass of them."""
    if isinstance(record, Var):
        return [record]
    return [v for part in _parts(record).values() for v in flat(part)]


def like(record: R, values: Iterator[Var]) -> R:
    """Return a record of the same kind with other values."""
    if isinstance(record, Var):
        return next(values)  # type: ignore[return-value]
    parts = {name: like(part, values) for name, part in _parts(record).items()}
    return tuple(parts.values()) if isinstance(record, tuple) else type(record)(**parts)  # type: ignore[return-value]


def inside(name: str, record: R) -> tuple[ProgramBuilder, R]:
    """Return the builder of a program whose inputs are the values of a record, and that record inside it."""
    b = ProgramBuilder(name)
    return b, like(record, iter(b.inputs(*(v.size for v in flat(record)))))


def _parts(record: Any) -> dict[str, Any]:
    if isinstance(record, tuple):
        return {str(k): part for k, part in enumerate(record)}
    return {f.name: getattr(record, f.name) for f in fields(record)}
