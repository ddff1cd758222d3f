"""Write names into Markdown, which the page reads with HTML in it."""

from __future__ import annotations


def as_written(text: str) -> str:
    """Return Markdown that shows a text as it is: every character with a meaning becomes a reference to itself."""
    return "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in text)
