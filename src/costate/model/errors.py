"""What goes wrong with robot files, and what is assumed when they are silent."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field


class ModelError(ValueError):
    """A robot description that cannot be right. The message names the file, the line and the element."""


class ModelWarning(UserWarning):
    """Something a robot description leaves open, and what was assumed instead."""


@dataclass(frozen=True)
class Assumptions:
    """Collects what a reader assumes, so that each assumption is warned of once, with all the elements it concerns."""

    file: str
    found: dict[str, list[str]] = field(default_factory=dict)
    """What was assumed -> the elements it was assumed for."""

    def note(self, assumption: str, element: str) -> None:
        elements = self.found.setdefault(assumption, [])
        if element not in elements:
            elements.append(element)

    def warn(self, stacklevel: int = 3) -> None:
        for assumption, elements in self.found.items():
            shown = ", ".join(elements[:5])
            more = f" and {len(elements) - 5} more" if len(elements) > 5 else ""
            warnings.warn(f"{self.file}: {assumption}: {shown}{more}", ModelWarning, stacklevel=stacklevel + 1)
