"""A cell of the accuracy matrix, and how reports of checks become cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from costate.audit.check import Check, GradientReport

TABLES = {
    "value": "Value",
    "finite_difference": "Derivative",
    "duality": "Duality",
    "second_order": "Second order",
    "float32": "Float32",
}
"""Kind of comparison -> beginning of the name of its table."""


@dataclass(frozen=True)
class Cell:
    """Largest error found at one place of one table."""

    table: str
    row: str
    column: str
    error: float | None
    """Relative; None where there was nothing to compare with."""
    bound: float
    note: str = ""
    """The comparison, where it is wrong, or the reason why there is none."""

    @property
    def place(self) -> tuple[str, str, str]:
        return self.table, self.row, self.column

    @property
    def ok(self) -> bool:
        return self.error is not None and self.error <= self.bound

    @property
    def share(self) -> float:
        """Error as a fraction of the bound; infinite where nothing could be compared."""
        return math.inf if self.error is None or math.isnan(self.error) else self.error / self.bound

    @property
    def shown(self) -> str:
        return "none" if self.error is None else f"{self.error:.0e}"


Part = Callable[[], list[Cell]]
"""Something that is checked at once."""


def cells_of(report: GradientReport, row: str, column: str, of: str) -> list[Cell]:
    """One cell for every kind of comparison that was made. of: what rows and columns are, the end of the tables' names."""
    found = []
    for kind, title in TABLES.items():
        checks = [c for c in report.checks if c.kind == kind]
        if checks:
            found.append(_cell(f"{title}: {of}", row, column, checks))
    return found


def cell_of_input(report: GradientReport, wrt: str, row: str, column: str, of: str) -> list[Cell]:
    """The derivative in one input; nothing where the function does not depend on it."""
    checks = [c for c in report.checks if c.kind == "finite_difference" and c.wrt == wrt]
    return [_cell(f"Derivative: {of}", row, column, checks)] if checks else []


def _cell(table: str, row: str, column: str, checks: list[Check]) -> Cell:
    """The worst of some comparisons; none, where one of them could not be made."""
    missing = [c for c in checks if not c.compared]
    wrong = [c for c in checks if c.compared and not c.ok]
    if missing and not wrong:
        return Cell(table, row, column, None, missing[0].allowed, missing[0].note)
    worst = max(
        (c for c in checks if c.compared), key=lambda c: math.inf if math.isnan(c.error) else c.error / c.allowed
    )
    return Cell(table, row, column, worst.error, worst.allowed, "" if worst.ok else str(worst))
