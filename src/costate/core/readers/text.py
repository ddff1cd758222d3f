"""Text files of unknown origin: read within limits, and with errors that name the file and the line.

A file is as large as it likes to be: `read_text` stops at a limit, `lines_of` refuses lines that no person or program writes, and
`parsed` refuses JSON that is nested so deeply that those who walk through it would end in a RecursionError.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from costate.core.limits import exceeded, limit

LONGEST = 1_000_000
"""Characters of a line; a row of numbers has some hundred."""
DEEPEST = 100
"""Levels of lists and objects in JSON; what we write has ten or so."""


def read_bytes(path: Path, most: str = "text_mb") -> bytes:
    """Return the content of a file, no longer than a limit in MB, which is named in the error."""
    with open(path, "rb") as file:
        data = file.read(limit(most) * 2**20 + 1)
    if len(data) > limit(most) * 2**20:
        raise ValueError(f"{path} is too large: {exceeded(most)}")
    return data


def read_text(path: Path, most: str = "text_mb", errors: str = "strict") -> str:
    """Return the text of a UTF-8 file, without a mark at its beginning. errors: as in `bytes.decode`."""
    data = read_bytes(path, most)
    try:
        return data.decode("utf-8-sig", errors)
    except UnicodeDecodeError as error:
        start = error.start + (len(data) - len(error.object))  # the mark is not counted
        line = data.count(b"\n", 0, start) + 1
        kind = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "another encoding, or no text"
        raise ValueError(
            f"{path}, line {line}: byte 0x{data[start]:02x} is not UTF-8; this is {kind}: save it as UTF-8"
        ) from None


def lines_of(path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the text of each line of a UTF-8 file, without its end."""
    for number, line in enumerate(io.StringIO(read_text(path, errors=errors), newline=None), 1):
        if len(line) > LONGEST:
            raise ValueError(f"{path}, line {number}: has {len(line):,} characters; expected {LONGEST:,} at most")
        yield number, line.rstrip("\n")


def shown(text: str, most: int = 60) -> str:
    """Return a text as an error quotes it: what is long is cut."""
    return repr(text if len(text) <= most else f"{text[:most]}...")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; one that is damaged is named in the error."""
    try:
        return parsed(read_text(path, "json_mb"))
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path} is damaged: it is not JSON ({error})") from error


def parsed(text: str) -> Any:
    """Return the value of JSON text; raise a ValueError if it is nested deeper than anything that we write."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"lists or objects are nested more than {DEEPEST} deep") from None
    layer = [value]
    for _ in range(DEEPEST + 1):
        layer = [v for x in layer if isinstance(x, list | dict) for v in (x.values() if isinstance(x, dict) else x)]
        if not layer:
            return value
    raise ValueError(f"lists or objects are nested more than {DEEPEST} deep")


def finite(text: str) -> float:
    """Return the finite number that a text is, in the digits of ASCII; Python would also take 1_0, inf and other scripts."""
    if text.isascii() and "_" not in text and abs(value := float(text)) < float("inf"):
        return value
    raise ValueError(f"{shown(text)} is not a finite number")
