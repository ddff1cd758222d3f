"""Errors in robot files, and warnings of what is assumed when they are silent."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field


class ModelError(ValueError):
    """An error in a robot description. The message names the file, the line and the element."""


class ModelWarning(UserWarning):
    """A warning of something that a robot description leaves open, and of what was assumed instead."""


@dataclass(frozen=True)
class Assumptions:
    """A collection of what a reader assumes, so that it warns of each assumption once, with all elements it concerns."""

    file: str
    found: dict[str, list[str]] = field(default_factory=dict)
    """Elements for which something was assumed, by assumption."""
    noted: set[tuple[str, str]] = field(default_factory=set, repr=False)
    """Pairs of assumption and element that are in `found`."""

    def note(self, assumption: str, element: str) -> None:
        """Note that something is assumed for an element."""
        if (assumption, element) not in self.noted:
            self.noted.add((assumption, element))
            self.found.setdefault(assumption, []).append(element)

    def warn(self, stacklevel: int = 3) -> None:
        """Warn of all assumptions, once each."""
        for assumption, elements in self.found.items():
            shown = ", ".join(elements[:5])
            more = f" and {len(elements) - 5} more" if len(elements) > 5 else ""
            warnings.warn(f"{self.file}: {assumption}: {shown}{more}", ModelWarning, stacklevel=stacklevel + 1)
