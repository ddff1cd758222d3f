"""Titles of pages: names are data."""

from __future__ import annotations

from types import SimpleNamespace

from costate.viewer.title import titled


def response(kind: str, body: bytes) -> SimpleNamespace:
    return SimpleNamespace(headers={"Content-Type": kind, "Content-Length": str(len(body))}, body=body)


def test_a_name_cannot_end_the_title() -> None:
    page = titled(response("text/html; charset=utf-8", b"<head><title>Other</title></head>"), r"<script>\1</script>")
    assert page.body == rb"<head><title>&lt;script&gt;\1&lt;/script&gt;</title></head>"
    assert page.headers["Content-Length"] == str(len(page.body))


def test_other_files_stay_as_they_are() -> None:
    script = response("application/javascript", b"'<title>x</title>'")
    assert titled(script, "ours").body == b"'<title>x</title>'"
    assert titled(None, "ours") is None
