"""Reads XML files of unknown origin: no entities, no network, bounded size, and errors that name file, line and element."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

from costate.core.arrays import Array
from costate.model.errors import ModelError

MAX_BYTES = 16 * 2**20
"""Largest size of a file; those of robots are below 1 MB. The parser itself bounds depth (256) and text length."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$", re.ASCII)
_DECLARATION = re.compile(rb"^\s*<\?xml version=.0\.0.[^<>]*\?>|(?<=[\s>])<\?xml\s[^<>]*\?>")
"""Declarations that parsers must refuse but files have: <?xml version="0.0"?>, or one after a blank line or comment."""
_INFINITE = re.compile(r"[+-]?inf(inity)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Node:
    """An XML element that knows which file it is from."""

    element: Any
    file: str

    @property
    def tag(self) -> str:
        return self.element.tag

    @property
    def line(self) -> int:
        return self.element.sourceline

    def children(self, tag: str | None = None) -> Iterator[Node]:
        return (Node(e, self.file) for e in self.element if isinstance(e.tag, str) and tag in (None, e.tag))

    def child(self, tag: str) -> Node | None:
        return next(self.children(tag), None)

    def require(self, tag: str) -> Node:
        return self.child(tag) or self.fail(f"has no <{tag}> element; add one")

    def text(self, attribute: str, default: str | None = None) -> str:
        value = self.element.get(attribute, default)
        if value is None:
            self.fail(f'has no attribute "{attribute}"; add one')
        return value.strip()

    def name(self) -> str:
        return self.text("name") or self.fail("has an empty name; give it one")

    def number(self, attribute: str, default: float | None = None, infinite: bool = False) -> float:
        if default is not None and attribute not in self.element.attrib:
            return default
        return self._float(attribute, self.text(attribute), infinite)

    def vector(self, attribute: str, default: tuple[float, ...]) -> Array:
        """Return a row of numbers, as many as the default has."""
        if attribute not in self.element.attrib:
            return np.array(default)
        words = self.text(attribute).split()
        if len(words) != len(default):
            given = self.text(attribute)
            self.fail(f'{attribute}="{_short(given)}" has {len(words)} numbers; {len(default)} expected{_xacro(given)}')
        return np.array([self._float(attribute, word) for word in words])

    def numbers(self, attribute: str, count: int, default: float) -> Array:
        """Return a number of numbers, which may be infinite; a single one given stands for all of them."""
        words = self.element.get(attribute, "").split()
        if not words:
            return np.full(count, default)
        if len(words) not in (1, count):
            self.fail(f'{attribute}="{_short(self.text(attribute))}" has {len(words)} numbers; {count} expected')
        return np.broadcast_to([self._float(attribute, word, infinite=True) for word in words], (count,)).astype(float)

    def _float(self, attribute: str, word: str, infinite: bool = False) -> float:
        if _NUMBER.match(word):
            value = float(word)
            if math.isfinite(value) or infinite:
                return value
        elif infinite and _INFINITE.match(word):
            return float(word)
        self.fail(f'{attribute}="{_short(word)}" is not a finite number{_xacro(word)}')

    def fail(self, problem: str) -> NoReturn:
        raise ModelError(f"{self.file}:{self.line}: {self.describe()} {problem}")

    def describe(self) -> str:
        """Return the element and the nearest named element around it: <origin> of <joint 'elbow'>."""
        own = self.element.get("name")
        text = f"<{self.tag} '{_short(own)}'>" if own else f"<{self.tag}>"
        for outer in self.element.iterancestors():
            if not own and outer.get("name") and outer.tag != "robot":
                return f"{text} of <{outer.tag} '{_short(outer.get('name'))}'>"
        return text


def parse(path: Path) -> Node:
    """Return the root element of an XML file; raise a ModelError that says why there is none."""
    return parse_bytes(_read(path), str(path))


def parse_bytes(data: bytes, file: str) -> Node:
    """Return the root element of XML; the file is named in errors."""
    if not data.strip():
        raise ModelError(f"{file}: the file is empty; a robot description in XML is expected")
    plain = data.replace(b"\0", b"")  # also finds declarations in UTF-16
    if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
        raise ModelError(
            f"{file}: document types and entities are refused (they can read files and exhaust memory); remove them"
        )
    # "recover" lets us pass over undeclared name space prefixes, common in sensor tags; any other fault is an error.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False, recover=True)
    try:
        root = etree.fromstring(_without_odd_declaration(data), parser)
    except etree.XMLSyntaxError as error:
        raise ModelError(f"{file}:{error.lineno or 1}: this is not well-formed XML: {error.msg}") from None
    for entry in parser.error_log:  # pyright: ignore[reportGeneralTypeIssues]
        if entry.domain != etree.ErrorDomains.NAMESPACE:
            raise ModelError(f"{file}:{entry.line}: this is not well-formed XML: {entry.message.strip()}")
    if root is None:
        raise ModelError(f"{file}: this is not XML; a robot description in XML is expected")
    return Node(root, file)


def _without_odd_declaration(data: bytes) -> bytes:
    if data.rfind(b"<?xml") <= 0 and b"0.0" not in data[:40]:  # the search takes longer than parsing
        return data
    return _DECLARATION.sub(_blank, data, count=1)


def _blank(declaration: re.Match[bytes]) -> bytes:
    """Return line breaks only, so that line numbers stay."""
    return b"\n" * declaration[0].count(b"\n")


def _read(path: Path) -> bytes:
    if not path.exists():
        raise ModelError(f"{path}: there is no such file")
    if not path.is_file():
        raise ModelError(f"{path}: this is not a file; give the path of a .urdf or MJCF .xml file")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ModelError(f"{path}: {size / 2**20:.0f} MB is more than a robot file can have ({MAX_BYTES // 2**20} MB)")
    return path.read_bytes()


def _xacro(value: str) -> str:
    return "; this looks like a xacro file: run xacro on it first" if "${" in value or "$(" in value else ""


def _short(text: str | None, length: int = 60) -> str:
    text = text or ""
    return text if len(text) <= length else text[: length - 3] + "..."
