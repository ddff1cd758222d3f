"""The accuracy matrix as a page of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.matrix.cell import Cell

if TYPE_CHECKING:
    from benchmarks.matrix.matrix import Matrix


INTRODUCTION = """# Accuracy of the gradients

Largest relative error found in each cell, by `python -m benchmarks.matrix --markdown docs/accuracy_matrix.md`, version {version},
{date}: {count} cells, {wrong}. {parts}What is compared, and how errors are scaled, is described in
[gradients.md](gradients.md). The worst cell of each table, relative to its bound, is bold; a dash is a combination that does not
exist{holes}.

Points are fixed and in general position: no joint at zero, no axis along a coordinate, shapes that overlap by a millimetre and
slide. On a switch gradients jump with the function: see [simulation.md](simulation.md#at-a-switch).

The numbers are in [accuracy_matrix.json](accuracy_matrix.json); tests hold some of them against new ones, and all of them against
their bounds.
"""

REFERENCES = {
    "Value": "with Pinocchio, which gets the robot joint by joint; integrate and difference have no counterpart there",
    "Derivative": "the JVP with central differences extrapolated to a step of zero",
    "Duality": "<u, J v> of the JVP with <J^T u, v> of the VJP",
    "Second order": "backward through the backward pass with extrapolated differences of the gradient",
    "Float32": "value and gradient in single precision with those in double precision, at the same point",
}
"""Beginning of a table's name -> what is compared with what."""


def markdown(matrix: Matrix) -> str:
    wrong = matrix.wrong
    count = "none of them wrong" if not wrong else f"{len(wrong)} of them beyond their bound"
    whole = matrix.done == matrix.total
    page = [
        INTRODUCTION.format(
            version=matrix.version,
            date=matrix.date,
            count=len(matrix.cells),
            wrong=count,
            parts="" if whole else f"They are from {matrix.done} of {matrix.total} parts. ",
            holes="" if whole else " or was not computed",
        )
    ]
    if wrong:
        page.append("## Beyond their bounds\n")
        page += [f"- {c.table}: {c.row}, {c.column}: {c.shown}, bound {c.bound:.0e}: {c.note}" for c in wrong]
        page.append("")
    for name, cells in matrix.tables():
        reference = REFERENCES[name.partition(":")[0]]
        bounds = " or ".join(f"{b:.0e}" for b in sorted({c.bound for c in cells}))
        page += [f"## {name}\n", f"Compared: {reference}. Bound: {bounds}.\n", *table(cells), ""]
    return "\n".join(page)


def table(cells: list[Cell]) -> list[str]:
    """Rows and columns in order of appearance."""
    rows, columns = (list(dict.fromkeys(getattr(c, key) for c in cells)) for key in ("row", "column"))
    if len(columns) > len(rows):
        cells = [Cell(c.table, c.column, c.row, c.error, c.bound, c.note) for c in cells]
        rows, columns = columns, rows
    at = {(c.row, c.column): c for c in cells}
    worst = max(cells, key=lambda c: c.share)
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        shown = [_shown(at.get((row, column)), worst) for column in columns]
        lines.append(f"| {row} | {' | '.join(shown)} |")
    return lines


def _shown(cell: Cell | None, worst: Cell) -> str:
    if cell is None:
        return "-"
    return f"**{cell.shown}**" if cell is worst or not cell.ok else cell.shown
