"""The result of an audit: one row per function, as a table in the terminal and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from costate.audit.check import KINDS, GradientReport
from costate.report import Report

SHOWN = ("value", "finite_difference", "duality", "second_order", "float32")
"""Kinds of comparison that are columns of the table."""

Watch = Callable[[Sequence[str], str], Iterable[str]]
"""Progress display: a function of names and of a verb that says what is done with them; it yields the names one by one."""


def silent(names: Sequence[str], doing: str) -> Iterable[str]:
    """Return the names; this Watch shows nothing."""
    return names


@dataclass(frozen=True)
class Audit:
    """The functions that were checked, and what was found about each."""

    title: str
    rows: Mapping[str, GradientReport]
    """Reports by the name of the function, and of the point where it was checked."""
    notes: list[str] = field(default_factory=list)
    """Notes on what was compared with what, and on what could not be compared."""

    @property
    def ok(self) -> bool:
        """True if no comparison found an error."""
        return all(report.ok for report in self.rows.values())

    @property
    def columns(self) -> list[str]:
        """Titles of the columns."""
        return ["function", *(KINDS[kind] for kind in SHOWN), "verdict"]

    def cells(self) -> list[list[str]]:
        """Return a row per function: the largest relative error of every kind, and the verdict."""
        return [
            [name, *(number(report.worst(kind)) for kind in SHOWN), verdict(report)]
            for name, report in self.rows.items()
        ]

    def remarks(self) -> list[str]:
        """Describe errors, comparisons that a switch prevented, and gradients that are zero."""
        found = [*self.notes]
        for name, report in self.rows.items():
            found += [f"{name}: wrong: {c}" for c in report.failures]
            found += [f"{name}: not comparable: {c}" for c in _first_per_input(report)]
        return found + self._zeros()

    def _zeros(self) -> list[str]:
        found: list[str] = []
        for name, report in self.rows.items():
            for why in dict.fromkeys(report.zeros.values()):
                inputs = ", ".join(wrt for wrt, w in report.zeros.items() if w == why)
                found.append(f"{name}: exactly zero: the gradient of {inputs}{f': {why}' if why else ''}")
        return found

    def print(self) -> None:
        """Print the table and the remarks."""
        from rich import box
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Column, Table

        table = Table(
            *(Column(c, no_wrap=True, min_width=8) for c in self.columns),
            title=self.title,
            box=box.SIMPLE,
            title_justify="left",
        )
        for row in self.cells():
            style = "red" if row[-1] == "wrong" else "yellow" if row[-1] != "right" else ""
            table.add_row(*map(escape, row), style=style)
        console = Console()
        console.width = max(console.width, 110)  # a file or pipe has 80, which would cut numbers off
        console.print(table)
        for remark in self.remarks():
            console.print(f"  {escape(remark)}", highlight=False)

    def page(self) -> Report:
        """Make an HTML page of the table, the remarks, and the errors by function and input."""
        page = Report(self.title, "Largest relative errors; see docs/gradients.md for what is compared")
        checks = [c for report in self.rows.values() for c in report.checks]
        page.facts(
            {
                "verdict": "right" if self.ok else "wrong",
                "functions": len(self.rows),
                "comparisons": len(checks),
                "wrong": sum(not c.ok for c in checks),
                "at a switch": sum(c.switch for c in checks),
            }
        )
        page.table(self.cells(), self.columns)
        for remark in self.remarks():
            page.text(remark)
        page.section("Derivatives by input")
        page.table(
            [
                {"function": name, "input": wrt, "derivative": number(report.worst("finite_difference", wrt)),
                 "duality": number(report.worst("duality", wrt)), "second order": number(report.worst("second_order", wrt))}
                for name, report in self.rows.items()
                for wrt in dict.fromkeys(c.wrt for c in report.checks if c.wrt)
            ]
        )  # fmt: skip
        return page


def number(error: float | None) -> str:
    """Format an error; a dash stands for a comparison that was not made."""
    return "-" if error is None else f"{error:.1e}"


def verdict(report: GradientReport) -> str:
    """Return right, wrong, or "at a switch" where some comparisons were impossible."""
    if not report.ok:
        return "wrong"
    return "at a switch" if report.switches else "right"


def _first_per_input(report: GradientReport):
    return {(c.kind, c.wrt): c for c in reversed(report.switches)}.values()
