"""The result of an audit: one row per function, as a table in the terminal and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from costate.audit.check import KINDS, NOT_COMPARED, RIGHT, WRONG, Check, GradientReport, worst_of
from costate.report import Report

SHOWN = ("value", "finite_difference", "duality", "second_order", "float32")
"""Kinds of comparison that are columns of the table."""

EXIT_CODES = {RIGHT: 0, WRONG: 1, NOT_COMPARED: 3}
"""Exit codes of `costate gradcheck`; 2 is a mistake in the call, as of all commands."""

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
    def verdict(self) -> str:
        """Right, wrong, or not compared: the worst of all functions."""
        return worst_of(report.verdict for report in self.rows.values())

    @property
    def ok(self) -> bool:
        """True if everything was compared, and nothing is wrong."""
        return self.verdict == RIGHT

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return EXIT_CODES[self.verdict]

    @property
    def columns(self) -> list[str]:
        """Titles of the columns."""
        return ["function", *(KINDS[kind] for kind in SHOWN), "verdict"]

    def cells(self) -> list[list[str]]:
        """Return a row per function: the largest relative error of every kind, and the verdict."""
        return [
            [name, *(number(report.worst(kind)) for kind in SHOWN), report.verdict]
            for name, report in self.rows.items()
        ]

    def remarks(self) -> list[str]:
        """Describe errors, comparisons that were not possible, kinks, and gradients that are zero."""
        found = [*self.notes]
        for name, report in self.rows.items():
            found += [f"{name}: wrong: {c}" for c in report.failures]
            found += [f"{name}: not compared: {c}" for c in _first_per_input(report.not_compared)]
            found += [f"{name}: on a kink: {c.what}: {c.note}" for c in _first_per_input(report.kinks)]
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
            style = {RIGHT: "", WRONG: "red", NOT_COMPARED: "yellow"}[row[-1]]
            table.add_row(*map(escape, row), style=style)
        console = Console()
        console.width = max(console.width, 110)  # a file or pipe has 80, which would cut numbers off
        console.print(table)
        for remark in self.remarks():
            console.print(f"  {escape(remark)}", highlight=False)
        console.print(f"  verdict: {self.verdict} (exit code {self.exit_code})", highlight=False)

    def page(self) -> Report:
        """Make an HTML page of the table, the remarks, and the errors by function and input."""
        page = Report(self.title, "Largest relative errors; see docs/gradients.md for what is compared")
        checks = [c for report in self.rows.values() for c in report.checks]
        page.facts(
            {
                "verdict": self.verdict,
                "functions": len(self.rows),
                "comparisons": len(checks),
                "wrong": sum(c.verdict == WRONG for c in checks),
                "not compared": sum(not c.compared for c in checks),
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


def _first_per_input(checks: Sequence[Check]) -> Iterable[Check]:
    return {(c.kind, c.wrt): c for c in reversed(checks)}.values()
