"""Data inside a page."""

from __future__ import annotations

import json
from typing import Any


def inline_json(data: Any) -> str:
    """Return a value as the text of a <script type="application/json">: nothing in it can end or nest that element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
