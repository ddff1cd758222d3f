"""Kinds of damage to files: their bytes, their lines and words, and the values of JSON documents.

Each is a function of the content and of a source of chance, so that the number of a case says all.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

Damage = Callable[[bytes, random.Random], bytes]

JUNK = ("nan", "abc", "1,5", "0x10", "--1", "1e400", "\u0663", "1_0", "1..2", "${mass}")
"""Texts that are no finite numbers."""
ODD = (
    "0",
    "-1",
    "1e308",
    "-1e-320",
    "",
    " ",
    "1 2",
    "1 2 3",
    "inf",
    "-inf",
    "true",
    "x" * 5000,
    "\u00e4\u4e2d",
    "%s%n",
    "../../x",
)
"""May be fine in one place and wrong in another."""
CODE = '0); system("id"); (void)(0'
"""Text that would be statements, if it came to stand in a program."""


# --- bytes --------------------------------------------------------------------------------------------------------------


def flip(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 4, 32))):
        out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


def cut_out(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randrange(1, 200) :]


def repeat(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    piece = data[start : start + chance.randrange(1, 400)]
    return data[:start] + piece * chance.choice((2, 3, 100)) + data[start + len(piece) :]


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data.rstrip()) - 1)]


BYTES: dict[str, Damage] = {
    "bytes changed": flip,
    "bytes cut out": cut_out,
    "a piece repeated": repeat,
    "file cut short": truncate,
    "file empty": lambda data, chance: b"",
}
"""Damage to any file. It may leave a sound one."""


# --- lines and words ----------------------------------------------------------------------------------------------------


def _lines(change: Callable[[list[str], random.Random], None]) -> Damage:
    def apply(data: bytes, chance: random.Random) -> bytes:
        lines = data.decode().splitlines(keepends=True)
        change(lines, chance)
        return "".join(lines).encode()

    return apply


def _odd_word(lines: list[str], chance: random.Random) -> None:
    k = chance.choice([k for k, line in enumerate(lines) if re.search(r"\d", line)])
    word = chance.choice(list(re.finditer(r"[-+.\w]*\d[-+.\w]*", lines[k])))
    lines[k] = lines[k][: word.start()] + chance.choice(ODD + JUNK) + lines[k][word.end() :]


def _long_line(lines: list[str], chance: random.Random) -> None:
    piece, count = chance.choice(("(", ")", ",", '"', " ", "9", "G1", "\u0663", "$", "*", "-")), chance.choice((2, 200))
    lines.insert(chance.randrange(len(lines)), piece * (1000 * count) + "\n")


def _encoded(data: bytes, chance: random.Random) -> bytes:
    text = data.decode().replace("\n", "\u00e4\n", 1)
    return text.encode(chance.choice(("latin-1", "utf-16", "utf-16-be", "utf-32", "cp437")), "replace")


TEXT: dict[str, Damage] = {
    "an odd word": _lines(_odd_word),
    "another odd word": _lines(_odd_word),
    "a long line": _lines(_long_line),
    "a line deleted": _lines(lambda lines, chance: lines.__delitem__(chance.randrange(len(lines)))),
    "a line doubled": _lines(lambda lines, chance: lines.insert(chance.randrange(len(lines)), chance.choice(lines))),
    "lines mixed": _lines(lambda lines, chance: chance.shuffle(lines)),
    "another encoding": _encoded,
}
"""Damage to files of text."""


# --- JSON ---------------------------------------------------------------------------------------------------------------


def json_value(data: bytes, chance: random.Random) -> bytes:
    """Another value somewhere in a JSON document, or one taken away: at any place, deep or not, as likely as at any other."""
    value = json.loads(data)
    at, key = chance.choice(list(_places(value)))
    if chance.random() < 0.2 and isinstance(at, dict):
        del at[key]
    else:
        at[key] = chance.choice(OTHER)
    return json.dumps(value).encode()


OTHER = (None, -1, 0, 1.5, math.nan, math.inf, "x", "", [], {}, True, 10**30, [1, 2, 3], 10**12, CODE, [CODE], "\ud800")
"""Values that may stand where they do not belong."""


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all containers with their keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def deep(data: bytes, chance: random.Random) -> bytes:
    """A value nested deeply."""
    depth, (begin, end) = chance.choice((90, 900, 100_000)), chance.choice((("[", "]"), ('{"a":', "}")))
    place = chance.choice([m.end() for m in re.finditer(rb"[:\[,]", data)])
    return data[:place] + (begin * depth + "1" + end * depth).encode() + b"," + data[place:]


JSON: dict[str, Damage] = {
    "a value replaced": json_value,
    "another value replaced": json_value,
    "two values replaced": lambda data, chance: json_value(json_value(data, chance), chance),
    "values nested deeply": deep,
    "file cut short": lambda data, chance: data[: chance.randrange(len(data) - 2)],
}
"""Damage to JSON documents."""
