"""The title of the page, which the library of the page calls by its own name."""

from __future__ import annotations

import gzip
import re
from html import escape
from typing import Any

_TITLE = re.compile(rb"<title>[^<]*</title>")


def titled(response: Any, title: str) -> Any:
    """Give a page another title; any other response is returned as it is."""
    headers = getattr(response, "headers", {})
    if not str(headers.get("Content-Type", "")).startswith("text/html") or not response.body:
        return response
    packed = headers.get("Content-Encoding") == "gzip"
    page = gzip.decompress(response.body) if packed else response.body
    named = f"<title>{escape(title)}</title>".encode()
    page = _TITLE.sub(lambda _: named, page, count=1)
    response.body = gzip.compress(page, 1) if packed else page
    del headers["Content-Length"]
    headers["Content-Length"] = str(len(response.body))
    return response
