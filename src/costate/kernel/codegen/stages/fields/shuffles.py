"""Rows of four numbers to four vectors, and back.

What other entities read is brought into rows of four numbers first: one load then fetches all of them, and shuffles in registers
sort them into lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter

ROW = 4
"""Numbers of a row."""


def shuffle(e: Emitter, kind: str, a: str, b: str, order: Sequence[int]) -> str:
    """Return a vector of numbers of two vectors."""
    places = ", ".join(f"i32 {j}" for j in order)
    return e.new(f"shufflevector {kind} {a}, {kind} {b}, <{len(order)} x i32> <{places}>")


def rows_to_lanes(e: Emitter, rows: Sequence[str]) -> list[str]:
    """Return four vectors of lanes from one row of four numbers per lane."""
    width = e.n.width
    if width < ROW:  # two lanes: two halves of every row
        return [_pick(e, rows, c) for c in range(ROW)]
    groups = [_joined(e, [rows[k + ROW * g] for g in range(width // ROW)]) for k in range(ROW)]
    return transposed(e, groups)


def transposed(e: Emitter, a: Sequence[str]) -> list[str]:
    """Transpose 4 x 4 numbers in every group of four lanes of four vectors."""
    width, kind = e.n.width, e.n.vec
    groups = range(width // ROW)
    low = [x for g in groups for x in (4 * g, width + 4 * g, 4 * g + 1, width + 4 * g + 1)]
    high = [x + 2 for x in low]
    t = [shuffle(e, kind, a[k], a[k + 1], order) for k in (0, 2) for order in (low, high)]
    first = [x for g in groups for x in (4 * g, 4 * g + 1, width + 4 * g, width + 4 * g + 1)]
    second = [x + 2 for x in first]
    return [shuffle(e, kind, t[k], t[k + 2], order) for k in (0, 1) for order in (first, second)]


def interleaved(e: Emitter, lanes: Sequence[str]) -> list[str]:
    """Return four vectors that hold the rows of all lanes, lane after lane."""
    even = [_mixed(e, lanes[0], lanes[2], half) for half in (0, 1)]
    odd = [_mixed(e, lanes[1], lanes[3], half) for half in (0, 1)]
    return [_mixed(e, even[h], odd[h], half) for h in (0, 1) for half in (0, 1)]


def separated(e: Emitter, rows: Sequence[str]) -> list[str]:
    """Return four vectors of lanes from four vectors that hold the rows of all lanes, lane after lane."""
    kind, width = e.n.vec, e.n.width
    even, odd = list(range(0, 2 * width, 2)), list(range(1, 2 * width, 2))
    halves = [[shuffle(e, kind, rows[k], rows[k + 1], order) for k in (0, 2)] for order in (even, odd)]
    return [shuffle(e, kind, halves[h][0], halves[h][1], order) for order in (even, odd) for h in (0, 1)]


def _mixed(e: Emitter, a: str, b: str, half: int) -> str:
    width = e.n.width
    start = half * width // 2
    return shuffle(e, e.n.vec, a, b, [x for k in range(width // 2) for x in (k + start, width + k + start)])


def _joined(e: Emitter, parts: list[str]) -> str:
    size = ROW
    while len(parts) > 1:
        kind = f"<{size} x {e.n.scalar}>"
        parts = [shuffle(e, kind, parts[k], parts[k + 1], range(2 * size)) for k in range(0, len(parts), 2)]
        size *= 2
    return parts[0]


def _pick(e: Emitter, rows: Sequence[str], c: int) -> str:
    vector = "poison"
    for lane, row in enumerate(rows):
        x = e.new(f"extractelement <{ROW} x {e.n.scalar}> {row}, i64 {c}")
        vector = e.new(f"insertelement {e.n.vec} {vector}, {e.n.scalar} {x}, i64 {lane}")
    return vector
