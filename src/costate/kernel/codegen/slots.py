"""Slots: where the values of a program live while it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Memory:
    """Vectors at a pointer."""

    pointer: str
    offset: int = 0
    """Distance from the pointer [vectors]."""


@dataclass(frozen=True)
class Rows:
    """Rows of one of the kernel's tensors, read or written row by row."""

    tensor: int
    row_size: int
    first: int = 0
    """First row of this view."""


Slot = Memory | Rows


def shifted(slot: Slot, start: int) -> Slot:
    """Return a view that begins `start` elements later."""
    if isinstance(slot, Memory):
        return replace(slot, offset=slot.offset + start)
    return replace(slot, first=slot.first + start // slot.row_size)
