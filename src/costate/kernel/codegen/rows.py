"""Rows of tensors to vectors of lanes, and back: small functions that every kernel carries along.

A row of a tensor holds n numbers of one sample; the lanes of a block are W samples. Packing turns W rows of n numbers into n
vectors of W lanes, by W x W transpositions in registers. The order in which a shared input's gradient is summed is fixed:
sample by sample within a group of GROUP samples, whatever the number of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from costate.kernel.codegen.names import Names

GROUP = 64
"""Samples whose gradients of a shared input are summed in one go; a multiple of every number of lanes."""
LONG_ROW = 256
"""Numbers of a row that are moved by straight-line code; a longer row is moved in pieces of this size."""


class Text(Protocol):
    """A writer of generated code, which numbers its temporaries."""

    def new(self, text: str) -> str: ...
    def line(self, text: str) -> None: ...


class _Text:
    """Numbered temporaries for generated straight-line code."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def new(self, text: str) -> str:
        """Write an instruction; return the name of its result."""
        self.lines.append(f"  %x{len(self.lines)} = {text}")
        return f"%x{len(self.lines) - 1}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"  {text}")


def _transpose(t: _Text, n: Names, rows: Sequence[str]) -> list[str]:
    """Transpose W vectors of W numbers, in log2 W rounds of shuffles."""
    rows = list(rows)
    width = n.width
    d = 1
    while d < width:
        for i in range(width):
            if i & d:
                continue
            a, b = rows[i], rows[i + d]
            low = [j if not j & d else width + j - d for j in range(width)]
            high = [j + d if not j & d else width + j for j in range(width)]
            rows[i], rows[i + d] = _shuffle(t, n, a, b, low), _shuffle(t, n, a, b, high)
        d *= 2
    return rows


def _shuffle(t: Text, n: Names, a: str, b: str, order: Sequence[int]) -> str:
    mask = f"<{len(order)} x i32> <{', '.join(f'i32 {j}' for j in order)}>"
    return t.new(f"shufflevector {n.vec} {a}, {n.vec} {b}, {mask}")


def _groups(n: Names, size: int) -> list[tuple[int, int]]:
    """Return (first element, how many) of each group of at most W elements."""
    return [(j, min(n.width, size - j)) for j in range(0, size, n.width)]


def _lane_rows(t: _Text, n: Names) -> list[str]:
    offsets = t.new(f"load <{n.width} x i64>, ptr %lanes, align 8")
    rows = []
    for lane in range(n.width):
        offset = t.new(f"extractelement <{n.width} x i64> {offsets}, i64 {lane}")
        rows.append(t.new(f"getelementptr i8, ptr %row, i64 {offset}"))
    return rows


def _load_part(t: _Text, n: Names, pointer: str, first: int, count: int) -> str:
    at = t.new(f"getelementptr i8, ptr {pointer}, i64 {first * n.bytes}") if first else pointer
    if count == n.width:
        return t.new(f"load {n.vec}, ptr {at}, align {n.bytes}")
    bits = ", ".join(f"i1 {'true' if j < count else 'false'}" for j in range(n.width))
    return t.new(
        f"call {n.vec} @llvm.masked.load.{n.suffix}.p0(ptr align {n.bytes} {at}, {n.mask} <{bits}>, {n.vec} zeroinitializer)"
    )


def store_part(t: Text, n: Names, value: str, pointer: str, first: int, count: int) -> None:
    """Store the first `count` numbers of a vector, in pieces of powers of two: masked stores are slow on some CPUs."""
    done = 0
    while done < count:
        piece = 1 << ((count - done).bit_length() - 1)
        at = t.new(f"getelementptr i8, ptr {pointer}, i64 {(first + done) * n.bytes}")
        part = value if piece == n.width else _shuffle(t, n, value, "poison", range(done, done + piece))
        t.line(f"store <{piece} x {n.scalar}> {part}, ptr {at}, align {n.bytes}")
        done += piece


def pack_row(name: str, n: Names, size: int) -> str:
    """Write @name(row, lanes, target): one row of `size` numbers per lane into `size` vectors."""
    t = _Text()
    rows = _lane_rows(t, n)
    for first, count in _groups(n, size):
        columns = _transpose(t, n, [_load_part(t, n, r, first, count) for r in rows])
        for j in range(count):
            at = t.new(f"getelementptr i8, ptr %target, i64 {(first + j) * n.stride}")
            t.line(f"store {n.vec} {columns[j]}, ptr {at}, align {n.align}")
    body = "\n".join(t.lines)
    return f"define internal void @{name}(ptr %row, ptr %lanes, ptr %target) #0 {{\nentry:\n{body}\n  ret void\n}}\n"


def unpack_row(name: str, n: Names, size: int) -> str:
    """Write @name(source, row, lanes, count, mode): `size` vectors to one row per lane, for the first `count` lanes.

    Mode 0 stores each sample's row; mode 1 adds the rows of all samples, in order, to the one at `row`.
    """
    t = _Text()
    head = f"define internal void @{name}(ptr %source, ptr %row, ptr %lanes, i64 %count, i64 %mode) #0 {{\nentry:"
    t.line("%summed = icmp eq i64 %mode, 1")
    t.line("br i1 %summed, label %sum, label %spread")
    t.line("spread:")
    rows = _lane_rows(t, n)
    for first, count in _groups(n, size):
        values = _load_columns(t, n, first, count)
        for lane, value in enumerate(values):
            inside = t.new(f"icmp slt i64 {lane}, %count")
            t.line(f"br i1 {inside}, label %write{first}_{lane}, label %skip{first}_{lane}")
            t.line(f"write{first}_{lane}:")
            store_part(t, n, value, rows[lane], first, count)
            t.line(f"br label %skip{first}_{lane}")
            t.line(f"skip{first}_{lane}:")
    t.line("ret void")
    t.line("sum:")
    for first, count in _groups(n, size):
        total = _load_part(t, n, "%row", first, count)
        for lane, value in enumerate(_load_columns(t, n, first, count)):
            inside = t.new(f"icmp slt i64 {lane}, %count")
            more = t.new(f"fadd {n.vec} {total}, {value}")
            total = t.new(f"select i1 {inside}, {n.vec} {more}, {n.vec} {total}")
        store_part(t, n, total, "%row", first, count)
    t.line("ret void")
    return head + "\n" + "\n".join(_as_label(x) for x in t.lines) + "\n}\n"


def _as_label(line: str) -> str:
    return line.strip() if line.endswith(":") else line


def _load_columns(t: _Text, n: Names, first: int, count: int) -> list[str]:
    """Return the vectors first .. first + count of the source, transposed: one vector per lane."""
    columns = []
    for j in range(n.width):
        if j < count:
            at = t.new(f"getelementptr i8, ptr %source, i64 {(first + j) * n.stride}")
            columns.append(t.new(f"load {n.vec}, ptr {at}, align {n.align}"))
        else:
            columns.append("zeroinitializer")
    return _transpose(t, n, columns)
