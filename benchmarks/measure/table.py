"""Tables as Markdown, and the machine that their numbers depend on."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "casadi", "llvmlite", "numpy")
PROSE = 40
"""Characters: wider columns hold sentences."""


@dataclass(frozen=True)
class Table:
    """One table of results."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]
    note: str = ""
    """Explanation of what was measured and how, as Markdown."""

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", *([self.note, ""] if self.note else [])]
        lines.append(f"| {' | '.join(self.columns)} |")
        rows = [[cell(c) for c in row] for row in self.rows]
        prose = [k == 0 or any(len(row[k]) > PROSE for row in rows) for k in range(len(self.columns))]
        lines.append(f"|{''.join('---|' if left else '---:|' for left in prose)}")
        lines += [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join(lines)

    def text(self) -> str:
        """Format for a terminal: columns aligned, numbers to the right, prose to the left."""
        cells = [list(self.columns), *([cell(c) for c in row] for row in self.rows)]
        columns = [_aligned(column, first=k == 0) for k, column in enumerate(zip(*cells, strict=True))]
        return "\n".join([self.title, *(f"  {'  '.join(row).rstrip()}" for row in zip(*columns, strict=True))])


def _aligned(column: Sequence[str], first: bool) -> list[str]:
    width = max(map(len, column))
    return [c.ljust(width) if first or width > PROSE else c.rjust(width) for c in column]


def cell(value: str | float) -> str:
    """Three significant digits, thousands separated."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def machine(**more: str) -> dict[str, str]:
    """Return the facts that the numbers depend on."""
    facts = {"CPU": f"{_cpu()}, {cores()} cores available", "system": f"{platform.system()} {platform.machine()}"}
    return {**facts, "Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}, **more}


def now() -> dict[str, str]:
    """Return the date, the load of the machine, and the version of Costate."""
    from costate import __version__

    return {"costate": __version__, "date": date.today().isoformat(), "load": load()}


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> str:
    """Return the load of the machine."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
