"""JSON that people can read: what fits into a line is in one."""

from __future__ import annotations

import json
from typing import Any

WIDTH = 120
"""Longest line that holds more than one value."""


def laid_out(value: Any) -> str:
    """Return a value as JSON, ended by a line break. Numbers that are not finite are refused."""
    return _lines(value, "") + "\n"


def _lines(value: Any, indent: str) -> str:
    short = json.dumps(value, allow_nan=False)
    if len(indent) + len(short) <= WIDTH or not isinstance(value, dict | list) or not value:
        return short
    deeper = indent + " "
    if isinstance(value, list):
        rows = [_lines(v, deeper) for v in value]
    else:
        rows = [f"{json.dumps(k)}: {_lines(v, deeper)}" for k, v in value.items()]
    start, end = "[]" if isinstance(value, list) else "{}"
    inside = f",\n{deeper}".join(rows)
    return f"{start}\n{deeper}{inside}\n{indent}{end}"
