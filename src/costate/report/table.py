"""Tables as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from numbers import Real
from typing import Any


def cell(value: Any) -> str:
    """Return a value as it is read: floats with four digits, true and false as yes and no."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real) and not isinstance(value, int):
        return f"{float(value):.4g}"
    return str(value)


def table_html(rows: Sequence[Any], columns: Sequence[str] = (), caption: str = "") -> str:
    """Return a table as HTML; numbers are aligned to the right. Columns of mappings are their keys, in order of appearance."""
    if rows and isinstance(rows[0], Mapping):
        columns = columns or list(dict.fromkeys(key for row in rows for key in row))
        rows = [[row.get(c) for c in columns] for row in rows]
    if wrong := [row for row in rows if len(row) != len(columns)]:
        raise ValueError(
            f"a row has {len(wrong[0])} cells where the table has {len(columns)} columns: {list(wrong[0])}"
        )
    numeric = [all(isinstance(row[k], Real | None) for row in rows) and bool(rows) for k in range(len(columns))]

    def line(tag: str, values: Sequence[Any]) -> str:
        cells = (
            f"<{tag}{' class=number' if number else ''}>{escape(cell(v))}</{tag}>"
            for v, number in zip(values, numeric, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    head = f"<thead>{line('th', columns)}</thead>" if columns else ""
    body = "".join(line("td", row) for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="wide"><table>{title}{head}<tbody>{body}</tbody></table></div>'
