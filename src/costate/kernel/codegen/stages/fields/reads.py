"""Code of reads: what every kind of access does before the loop over blocks, and in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.stages.fields.loop import Loop, loop_function, run_loop
from costate.kernel.codegen.stages.fields.shuffles import ROW, interleaved, rows_to_lanes
from costate.kernel.ops.fields.access import Access, Indexed, Own, Shared, Stencil
from costate.kernel.ops.fields.blocks import BLOCK, block_count

Words = list[tuple[str, str]]
"""Words of a loop's context: (kind, value)."""
Pointers = list[str]
"""Address of the argument, for every part of a block."""


class Reader:
    """Reads one argument of an entity's function."""

    def __init__(self, access: Access):
        self.access = access
        self.first = 0
        """Its first word in the context."""
        self.buffer = ""
        self.words: Pointers = []

    def prepare(self, e: Emitter, source: str) -> Words:
        """Write what comes before the loop; return the words that the loop needs."""
        return [("ptr", source)]

    def enter(self, loop: Loop) -> None:
        """Write what the loop does before its first block."""
        self.words = [loop.word(self.first)]

    def block(self, loop: Loop, lanes: Sequence[Pointers]) -> Pointers:
        """Write how a block reads it. lanes: for every index of stencils the addresses of the lanes' cells."""
        raise NotImplementedError


class OwnReader(Reader):
    """Takes the entity's own numbers where they are."""

    def block(self, loop: Loop, lanes: Sequence[Pointers]) -> Pointers:
        here = loop.e.element(self.words[0], loop.index, self.access.n)
        return [loop.part(here, part) for part in range(loop.e.n.parts)]


class SharedReader(Reader):
    """Takes shared numbers where they are: every lane has them."""

    def block(self, loop: Loop, lanes: Sequence[Pointers]) -> Pointers:
        return self.words * loop.e.n.parts


class GatherReader(Reader):
    """Collects numbers of other entities: single ones from an array, several from rows of four."""

    access: Indexed | Stencil

    @property
    def rows(self) -> int:
        """Number of rows of four per entity; 0 for a plain array."""
        return -(-self.access.n // ROW) if self.access.n > 1 else 0

    def prepare(self, e: Emitter, source: str) -> Words:
        blocks = block_count(self.access.target)
        found = [e.hold(blocks * ROW) for _ in range(self.rows)]
        for k, target in enumerate(found):
            to_rows(e, source, self.access.n, k, target, blocks)
        return [("ptr", p) for p in found or [source]]

    def enter(self, loop: Loop) -> None:
        self.words = [loop.word(self.first + k) for k in range(self.rows or 1)]
        self.buffer = loop.e.hold(self.access.width)

    def block(self, loop: Loop, lanes: Sequence[Pointers]) -> Pointers:
        e, n = loop.e, self.access.n
        for part in range(e.n.parts):
            for entry, cells in enumerate(self.cells(loop, part, lanes)):
                if not self.rows:
                    loop.store(_numbers(e, self.words[0], cells), loop.at(self.buffer, entry, part))
                for k in range(self.rows):
                    rows = [_row(e, self.words[k], cell) for cell in cells]
                    for c, vector in enumerate(rows_to_lanes(e, rows)[: n - ROW * k]):
                        loop.store(vector, loop.at(self.buffer, entry * n + ROW * k + c, part))
        return [loop.part(self.buffer, part) for part in range(e.n.parts)]

    def cells(self, loop: Loop, part: int, lanes: Sequence[Pointers]) -> Sequence[Sequence[str]]:
        """Return, entry by entry, the entities that the lanes of a part reach."""
        raise NotImplementedError


class IndexedReader(GatherReader):
    """Collects by a constant table."""

    def cells(self, loop: Loop, part: int, lanes: Sequence[Pointers]) -> Sequence[Sequence[str]]:
        assert isinstance(self.access, Indexed)
        e, m = loop.e, self.access.table.shape[1]
        name = self.access.names[0]
        e.unit.grids[name] = self.access.read_table
        row = e.new(f"mul i64 {loop.index}, {m * BLOCK}")
        start = e.new(f"getelementptr i32, ptr @{name}, i64 {row}")
        return [lane_words(e, start, j * BLOCK + part * e.n.width, "i32") for j in range(m)]


class StencilReader(GatherReader):
    """Collects around a computed index."""

    def cells(self, loop: Loop, part: int, lanes: Sequence[Pointers]) -> Sequence[Sequence[str]]:
        assert isinstance(self.access, Stencil)
        e = loop.e
        base = lane_words(e, lanes[self.access.index][part], 0, "i64")
        return [[e.new(f"add i64 {b}, {offset}") for b in base] for offset in self.access.offsets]


READERS: dict[type[Access], Callable[[Access], Reader]] = {
    Own: OwnReader,
    Shared: SharedReader,
    Indexed: IndexedReader,
    Stencil: StencilReader,
}


def lane_words(e: Emitter, start: str, first: int, kind: str) -> list[str]:
    """Load one integer per lane of a vector, as i64."""
    found = []
    for lane in range(e.n.width):
        x = e.load(kind, e.new(f"getelementptr {kind}, ptr {start}, i64 {first + lane}"))
        found.append(x if kind == "i64" else e.new(f"sext {kind} {x} to i64"))
    return found


def _numbers(e: Emitter, array: str, cells: Sequence[str]) -> str:
    """Load one number per lane."""
    vector = "poison"
    for lane, cell in enumerate(cells):
        x = e.load(e.n.scalar, e.new(f"getelementptr {e.n.scalar}, ptr {array}, i64 {cell}"))
        vector = e.new(f"insertelement {e.n.vec} {vector}, {e.n.scalar} {x}, i64 {lane}")
    return vector


def _row(e: Emitter, rows: str, cell: str) -> str:
    """Load a row of four numbers."""
    kind = f"<{ROW} x {e.n.scalar}>"
    return e.new(f"load {kind}, ptr {e.new(f'getelementptr {kind}, ptr {rows}, i64 {cell}')}, align {e.n.bytes}")


def to_rows(e: Emitter, source: str, n: int, group: int, target: str, blocks: int) -> None:
    """Write numbers 4 group .. 4 group + 3 of all entities as rows of four; what there is not is 0."""
    pointers: Pointers = []
    count = min(n - ROW * group, ROW)

    def before(loop: Loop) -> None:
        pointers[:] = [loop.word(0), loop.word(1)]

    def body(loop: Loop) -> None:
        here = loop.e.element(pointers[0], loop.index, n)
        there = loop.e.element(pointers[1], loop.index, ROW)
        for part in range(loop.e.n.parts):
            lanes = [loop.load(loop.at(here, ROW * group + c, part)) for c in range(count)]
            rows = interleaved(loop.e, [*lanes, *["zeroinitializer"] * (ROW - count)])
            for k, row in enumerate(rows):
                offset = (part * ROW + k) * loop.e.n.align
                loop.store(row, loop.e.new(f"getelementptr i8, ptr {there}, i64 {offset}"))

    fn = loop_function(e, f"to_rows_{n}_{group}", before, body)
    run_loop(e, fn, [("ptr", source), ("ptr", target)], "0", str(blocks))
