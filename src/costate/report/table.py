"""Tables as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import Any

from costate.core.display import number


@dataclass(frozen=True)
class Beyond:
    """A value that is beyond its limit, and shown as such."""

    value: Any


def beyond(value: Any, limit: float, text: str | None = None) -> Any:
    """Return a value, marked if its size is above a limit. text: how it is written; None: as any number."""
    shown = value if text is None else text
    return Beyond(shown) if not abs(float(value)) <= limit else shown


def plain(value: Any) -> Any:
    """Return a value without its mark."""
    return value.value if isinstance(value, Beyond) else value


def mark(value: Any) -> str:
    """Return the class of HTML of a value that is marked."""
    return "beyond" if isinstance(value, Beyond) else ""


def cell(value: Any) -> str:
    """Return a value as it is read: floats with four digits, true and false as yes and no."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real) and not isinstance(value, int):
        return number(value, 4)
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
    numeric = [all(isinstance(plain(row[k]), Real | None) for row in rows) and bool(rows) for k in range(len(columns))]

    def line(tag: str, values: Sequence[Any]) -> str:
        cells = (_cell(tag, v, right) for v, right in zip(values, numeric, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    head = f"<thead>{line('th', columns)}</thead>" if columns else ""
    body = "".join(line("td", row) for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="wide"><table>{title}{head}<tbody>{body}</tbody></table></div>'


def _cell(tag: str, value: Any, right: bool) -> str:
    kinds = " ".join(kind for kind in ("number" if right else "", mark(value)) if kind)
    named = f' class="{kinds}"' if kinds else ""
    told = ' title="beyond its limit"' if mark(value) else ""
    return f"<{tag}{named}{told}>{escape(cell(value))}</{tag}>"
