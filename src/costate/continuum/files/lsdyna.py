"""Meshes in LS-DYNA keyword files (.k): nodes, solid elements, and the times at which they are born.

Read are *NODE, *ELEMENT_SOLID (nodes on the line of the element or on the next one) and *DEFINE_CURVE; other keywords are skipped.
Numbers stand in columns of fixed width, also those of the long format (`LONG=Y`, `*NODE +`) and of the one with ten digits
(`*NODE %`), between commas, or between blanks. Births are a curve as in the files of Mozaffar and Cao: rows (time, number of the
element). Elements that are not in it, those of the base plate, are there from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NoReturn

import numpy as np

from costate.continuum.checks import first
from costate.continuum.hexahedron import check_shapes
from costate.continuum.mesh import EVER, HexMesh
from costate.core.files import write_text
from costate.core.readers.text import finite, lines_of, shown

_FORMATS: dict[str, dict[str, tuple[int, ...]]] = {
    "": {"node": (8, 16, 16, 16), "solid": (8,) * 10, "head": (10,) * 8, "pair": (20, 20)},
    "+": {"node": (20,) * 4, "solid": (20,) * 10, "head": (20,) * 8, "pair": (20, 20)},
    "%": {"node": (10, 16, 16, 16), "solid": (10,) * 10, "head": (10,) * 8, "pair": (20, 20)},
}
"""Format -> card -> widths of its fields."""

FARTHEST = 1e30
"""Largest coordinate, in units of the file: volumes are cubes of it."""
MOST = 2**53
"""Largest number of a node, an element or a curve: above it not every whole number is a float."""


@dataclass
class _Deck:
    """Cards of a file, with the numbers of their lines."""

    path: Path
    nodes: dict[int, tuple[float, ...]] = field(default_factory=dict)
    elements: dict[int, tuple[int, ...]] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)
    curves: dict[int, list[tuple[int, float, float]]] = field(default_factory=dict)

    def fail(self, line: int, what: str) -> NoReturn:
        raise ValueError(f"{self.path}, line {line}: {what}")

    def numbers(self, line: int, text: str, widths: Sequence[int], what: str) -> list[float]:
        """Return the numbers of a card; a blank field is 0."""
        for fields in _splits(text, widths):
            try:
                if not fields:  # all there is stands behind the last column
                    break
                return [finite(f) if f else 0.0 for f in fields]
            except ValueError:
                continue
        self.fail(line, f"{shown(text.rstrip())}; expected {what}, finite numbers")


def read_lsdyna(path: str | Path, unit: float = 1e-3, curve: int | None = None) -> HexMesh:
    """Return the hexahedra of an LS-DYNA file, in the order of their births.

    Args:
        path: File.
        unit: Length of one unit of the file [m]; the usual one is a millimetre.
        curve: Number of the *DEFINE_CURVE with births; None: the only one, or of several the only one whose values are elements;
            0: no births, all elements are there from the beginning.
    """
    deck = _read(Path(path))
    if not deck.elements:
        raise ValueError(f"{path} has no *ELEMENT_SOLID; expected a mesh of solid elements")
    numbers = np.fromiter(deck.nodes, dtype=np.int64)
    order = np.argsort(numbers)
    wanted = np.array(list(deck.elements.values()))
    place = np.minimum(np.searchsorted(numbers[order], wanted), len(numbers) - 1)
    if (missing := (numbers[order][place] != wanted) if len(numbers) else np.ones(wanted.shape, dtype=bool)).any():
        k = first(missing.any(axis=1))
        number = list(deck.elements)[k]
        deck.fail(
            deck.lines[number], f"element {number} has node {wanted[k][first(missing[k])]}, which no *NODE defines"
        )
    used, elements = np.unique(order[place], return_inverse=True)
    nodes = unit * np.array(list(deck.nodes.values()))[used]
    elements = elements.reshape(-1, 8)
    try:
        check_shapes(nodes, elements, list(deck.elements))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return HexMesh.sorted(nodes, elements, _births(deck, curve))


def write_lsdyna(path: str | Path, mesh: HexMesh, unit: float = 1e-3) -> None:
    """Write a mesh with its births as an LS-DYNA file, in units of a length [m]; numbers are from 1 on."""
    rows = ["*KEYWORD", "*DEFINE_CURVE", f"{1:10d}{0:10d}{1.0:10.1f}{1.0:10.1f}"]
    rows += [f"{t:20.12e}{k:20d}" for k, t in enumerate(mesh.birth, 1) if t > EVER]
    rows += ["*NODE"]
    rows += [f"{k:8d}{x:16.9e}{y:16.9e}{z:16.9e}" for k, (x, y, z) in enumerate(mesh.nodes / unit, 1)]
    rows += ["*ELEMENT_SOLID"]
    rows += [f"{k:8d}{1:8d}" + "".join(f"{n:8d}" for n in e) for k, e in enumerate((mesh.elements + 1).tolist(), 1)]
    write_text(Path(path), "\n".join([*rows, "*END"]) + "\n")


def _read(path: Path) -> _Deck:
    """Return the cards of a file."""
    deck = _Deck(path)
    for start, keyword, form, cards in _blocks(path):
        widths = _FORMATS[form]
        if keyword == "*NODE":
            _nodes(deck, cards, widths["node"])
        elif keyword in ("*ELEMENT_SOLID", "*ELEMENT_SOLID_TITLE"):
            _solids(deck, cards, widths["solid"])
        elif keyword in ("*DEFINE_CURVE", "*DEFINE_CURVE_TITLE"):
            _curve(deck, start, cards[1:] if keyword.endswith("TITLE") else cards, widths)
        elif keyword.startswith("*ELEMENT"):
            deck.fail(
                start, f"{keyword} is not supported; expected *ELEMENT_SOLID only: export hexahedra without options"
            )
        elif keyword.startswith("*INCLUDE"):
            deck.fail(start, f"{keyword} is not supported; put all of the mesh into one file")
    return deck


def _blocks(path: Path) -> Iterator[tuple[int, str, str, list[tuple[int, str]]]]:
    """Yield for each keyword its line, its name, its format, and the lines of its cards; comments and blank lines are left out."""
    long, block = "", None
    for place, line in lines_of(path, errors="replace"):  # comments may be in any encoding
        if line.startswith("$") or not line.strip():
            continue
        if not line.startswith("*"):
            if block:
                block[3].append((place, line))
            continue
        if block:
            yield block
        name, _, option = line.strip().upper().partition(" ")
        if name == "*KEYWORD" and "LONG=Y" in option.replace(" ", ""):
            long = "+"
        mark = name[-1] if name[-1] in "+%-" else option.strip()[-1:]
        form = {"+": "+", "%": "%", "-": ""}.get(mark, long)
        block = (place, name.rstrip("+%-"), form, [])
        if name == "*END":
            return
    if block:
        yield block


def _splits(text: str, widths: Sequence[int]) -> Iterator[list[str]]:
    """Yield the fields of a card by commas, or by columns and then by blanks."""
    text = text.rstrip()
    if "," in text:
        yield [f.strip() for f in text.split(",")][: len(widths)]
        return
    fields = [text[columns].strip() for columns in _columns(tuple(widths))]
    while fields and not fields[-1]:
        fields.pop()
    yield fields
    yield text.split()[: len(widths)]


@cache
def _columns(widths: tuple[int, ...]) -> list[slice]:
    ends = list(accumulate(widths))
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _nodes(deck: _Deck, cards: list[tuple[int, str]], widths: Sequence[int]) -> None:
    for line, text in cards:
        row = deck.numbers(line, text, widths, "a node: number, x, y, z")
        number = _whole(deck, line, row[:1], text)[0]
        if number in deck.nodes:
            deck.fail(line, f"node {number} is defined a second time; give each node once")
        if max(map(abs, row)) > FARTHEST:
            deck.fail(line, f"node {number} is at {row[1:4]}; expected coordinates up to {FARTHEST:g}")
        deck.nodes[number] = (*row[1:4], 0.0, 0.0, 0.0)[:3]


def _solids(deck: _Deck, cards: list[tuple[int, str]], widths: Sequence[int]) -> None:
    rows = iter(cards)
    for line, text in rows:
        row = deck.numbers(line, text, widths, "an element: number, part, eight nodes")
        if len(row) <= 2:  # two cards: number and part, then nodes
            after, nodes = next(rows, (line, ""))
            row = [*row, 0.0][:2] + deck.numbers(after, nodes, widths, "the nodes of an element")
        number, _, *nodes = _whole(deck, line, row, text)
        if len(nodes) < 8 or 0 in nodes[:8]:
            deck.fail(line, f"element {number} has the nodes {nodes}; expected eight")
        if any(nodes[8:]):
            deck.fail(line, f"element {number} has {len(nodes)} nodes; expected hexahedra with eight")
        if number in deck.elements:
            deck.fail(line, f"element {number} is defined a second time; give each element once")
        deck.elements[number], deck.lines[number] = tuple(nodes[:8]), line


def _curve(deck: _Deck, start: int, cards: list[tuple[int, str]], widths: dict[str, tuple[int, ...]]) -> None:
    """Take over a curve, scaled and shifted as its first card says."""
    if not cards:
        deck.fail(start, "*DEFINE_CURVE without cards; expected its number, then rows (time, element)")
    head = deck.numbers(*cards[0], widths["head"], "the number of a curve")
    number, _, scale_a, scale_o, shift_a, shift_o = (head + [0.0] * 6)[:6]
    if not 1 <= number <= MOST or number != int(number):
        deck.fail(
            cards[0][0], f"{shown(cards[0][1].rstrip())}; expected the number of the curve first, a whole one above 0"
        )
    rows = []
    for line, text in cards[1:]:
        pair = deck.numbers(line, text, widths["pair"], "two numbers, such as time and element")
        if len(pair) != 2:
            deck.fail(line, f"{shown(text.rstrip())}; expected two numbers, such as time and element")
        time, element = (scale_a or 1.0) * (pair[0] + shift_a), (scale_o or 1.0) * (pair[1] + shift_o)
        if not max(abs(time), abs(element)) < np.inf:
            deck.fail(
                line, f"{shown(text.rstrip())}, scaled and shifted, is ({time}, {element}); expected finite numbers"
            )
        rows.append((line, time, element))
    deck.curves[int(number)] = rows


def _births(deck: _Deck, curve: int | None) -> np.ndarray:
    """Return the birth of each element in the order of the file; the first one if a curve has several."""
    birth = dict.fromkeys(deck.elements, EVER)
    if curve is None:
        curve = _birth_curve(deck)
    if curve == 0:
        return np.array(list(birth.values()))
    if curve not in deck.curves:
        raise ValueError(f"{deck.path} has no *DEFINE_CURVE {curve}; it has {sorted(deck.curves) or 'none'}")
    for line, time, element in deck.curves[curve]:
        if element not in birth:
            deck.fail(
                line,
                f"curve {curve} names element {element:g}, which no *ELEMENT_SOLID defines; expected (time, element)",
            )
        number = int(element)
        birth[number] = time if birth[number] == EVER else min(time, birth[number])
    return np.array(list(birth.values()))


def _birth_curve(deck: _Deck) -> int:
    """Return the number of the curve that holds births, 0 if there is none."""
    if len(deck.curves) <= 1:
        return next(iter(deck.curves), 0)
    fitting = [n for n, rows in deck.curves.items() if rows and all(element in deck.elements for _, _, element in rows)]
    if len(fitting) != 1:
        raise ValueError(
            f"{deck.path} has the curves {sorted(deck.curves)}, of which {len(fitting)} could hold births; "
            "expected one: say which by curve=, or curve=0 for no births"
        )
    return fitting[0]


def _whole(deck: _Deck, line: int, row: list[float], text: str) -> list[int]:
    if any(abs(value) > MOST or value != int(value) for value in row):
        deck.fail(line, f"{shown(text.rstrip())}; expected whole numbers for nodes, elements and parts")
    return [int(value) for value in row]
