"""Formulas of operators alone as lines of source: one operation per line, common ones once. For engines that compile source."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.heat_problem import STORED, hex_flow, hex_flow_stored


class Listing:
    """Lines of source that compute what was traced."""

    def __init__(self, literal: Callable[[float], str] = repr):
        self.literal = literal
        """Function that writes a number of the target language."""
        self.lines: list[str] = []
        self._known: dict[str, Traced] = {}

    def name(self, text: str) -> Traced:
        """Return a variable that exists already."""
        return Traced(self, text)

    def emit(self, expression: str) -> Traced:
        """Return the variable that holds an expression."""
        if expression not in self._known:
            found = Traced(self, f"v{len(self.lines)}")
            self.lines.append(f"{found.text} = {expression}")
            self._known[expression] = found
        return self._known[expression]


class Traced:
    """A variable of a listing."""

    def __init__(self, listing: Listing, text: str):
        self.listing, self.text = listing, text

    def _with(self, sign: str, other: Any, swapped: bool = False) -> Traced:
        there = other.text if isinstance(other, Traced) else self.listing.literal(float(other))
        a, b = (there, self.text) if swapped else (self.text, there)
        return self.listing.emit(f"{a} {sign} {b}")

    def __add__(self, other: Any) -> Traced:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Traced:
        return self._with("+", other, True)

    def __sub__(self, other: Any) -> Traced:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Traced:
        return self._with("-", other, True)

    def __mul__(self, other: Any) -> Traced:
        return self._with("*", other)

    def __rmul__(self, other: Any) -> Traced:
        return self._with("*", other, True)

    def __truediv__(self, other: Any) -> Traced:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> Traced:
        return self._with("/", other, True)

    def __neg__(self) -> Traced:
        return self.listing.emit(f"-{self.text}")


def names(listing: Listing, letter: str, count: int) -> Sequence[Traced]:
    """Return the variables letter0, letter1, ..."""
    return [listing.name(f"{letter}{n}") for n in range(count)]


def hex_lines(literal: Callable[[float], str], geometry: str) -> tuple[list[str], list[str], list[str]]:
    """Return lines that compute an element, and the variables of its heat flow (8) and its capacity (8).

    They read T0 to T7, X0 to X23 (recomputed geometry) or G0 to G55 (stored), and alive.
    """
    listing = Listing(literal)
    T, alive = names(listing, "T", 8), listing.name("alive")
    if geometry == "stored":
        flow, capacity = hex_flow_stored(T, names(listing, "G", STORED), alive)
    else:
        flow, capacity = hex_flow(T, names(listing, "X", 24), alive)
    return listing.lines, [f.text for f in flow], [c.text for c in capacity]


def module(name: str, source: str) -> Any:
    """Import source as a module; its file stays, since engines read it again."""
    file = Path(tempfile.mkdtemp(prefix="costate-heat-")) / f"{name}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
