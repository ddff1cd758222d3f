"""Code of writes: what every kind of access does before the loop over blocks, in it, and after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.stages.fields.loop import Loop, loop_function, run_loop, zero_outside
from costate.kernel.codegen.stages.fields.reads import Pointers, Words, lane_words
from costate.kernel.codegen.stages.fields.shuffles import ROW, interleaved, separated
from costate.kernel.codegen.stages.fields.team import SHARE
from costate.kernel.ops.fields.access import Access, Greatest, Indexed, Own, Shared, Stencil
from costate.kernel.ops.fields.blocks import BLOCK, block_count

SUM_BLOCKS = SHARE
"""Blocks whose contributions to a total are summed lane by lane, by one thread; these sums are then added in order."""


class Writer:
    """Writes one result of an entity's function."""

    serial = False
    """True if the order of blocks matters, so that one thread does them all."""

    def __init__(self, access: Access, count: int):
        self.access = access
        self.blocks = block_count(count)
        self.first = 0
        self.held = ""
        """Address of the memory that results wait in, in the code around the loop."""
        self.pointer = ""
        """The same in the loop."""
        self.buffer = ""

    def prepare(self, e: Emitter, target: str, begin: str, end: str) -> Words:
        """Write what comes before the loop over blocks begin .. end - 1; return the words that the loop needs."""
        zero_outside(e, target, self.access.width, self.blocks, begin, end)
        return [("ptr", target)]

    def enter(self, loop: Loop) -> None:
        """Write what the loop does before its first block."""
        self.pointer = loop.word(self.first)

    def place(self, loop: Loop) -> str:
        """Return where the results of a block go."""
        return loop.e.element(self.pointer, loop.index, self.access.width)

    def block(self, loop: Loop, place: str, lanes: Sequence[Pointers]) -> None:
        """Write what is done with the results of a block."""

    def finish(self, e: Emitter, target: str) -> None:
        """Write what comes after the loop."""


class TotalWriter(Writer):
    """Sums over all entities: lane by lane in groups of blocks, then over the groups, then over the lanes."""

    join = "vadd"
    """Loop that joins the numbers of two groups."""

    def both(self, e: Emitter, kind: str, u: str, v: str) -> str:
        """Return two numbers, or vectors of them, joined."""
        return e.new(f"fadd {kind} {u}, {v}")

    def prepare(self, e: Emitter, target: str, begin: str, end: str) -> Words:
        size = -(-self.blocks // SUM_BLOCKS) * self.access.n
        self.held = e.hold(size)
        e.helper("vzero", f"ptr {self.held}", f"i64 {size}")
        return [("ptr", self.held)]

    def enter(self, loop: Loop) -> None:
        super().enter(loop)
        self.buffer = loop.e.hold(self.access.n)

    def place(self, loop: Loop) -> str:
        return self.buffer

    def block(self, loop: Loop, place: str, lanes: Sequence[Pointers]) -> None:
        e = loop.e
        sums = e.element(self.pointer, e.new(f"udiv i64 {loop.index}, {SUM_BLOCKS}"), self.access.n)
        for j in range(self.access.n):
            for part in range(e.n.parts):
                here = loop.at(sums, j, part)
                more = loop.load(loop.at(place, j, part))
                loop.store(self.both(e, e.n.vec, loop.load(here), more), here)

    def finish(self, e: Emitter, target: str) -> None:
        n, groups = self.access.n, -(-self.blocks // SUM_BLOCKS)
        sums = self.held
        with e.loop(str(groups - 1)) as g:
            more = e.element(sums, e.new(f"add i64 {g}, 1"), n)
            e.helper(self.join, f"ptr {sums}", f"ptr {more}", f"i64 {n}")
        with e.loop(str(n)) as j:
            here = e.element(sums, j)
            total = e.load(e.n.scalar, here)
            for lane in range(1, BLOCK):
                x = e.load(e.n.scalar, e.new(f"getelementptr {e.n.scalar}, ptr {here}, i64 {lane}"))
                total = self.both(e, e.n.scalar, total, x)
            e.spread(total, e.element(target, j))


class GreatestWriter(TotalWriter):
    """The greatest of all entities' numbers, and 0; what is not a number is the greatest."""

    join = "vmax"

    def both(self, e: Emitter, kind: str, u: str, v: str) -> str:
        more = e.new(f"fcmp ugt {kind} {v}, {u}")
        mask = e.n.mask if kind == e.n.vec else "i1"
        return e.new(f"select {mask} {more}, {kind} {v}, {kind} {u}")


class IndexedWriter(Writer):
    """Lets results wait in a buffer; every target then sums its own, in the order of the table."""

    def prepare(self, e: Emitter, target: str, begin: str, end: str) -> Words:
        assert isinstance(self.access, Indexed)
        self.held = e.hold(self.access.places)
        zero_outside(e, self.held, self.access.width, self.blocks, begin, end)
        behind = e.element(self.held, str(self.blocks), self.access.width)
        e.helper("vzero", f"ptr {behind}", f"i64 {self.access.width}")
        return [("ptr", self.held)]

    def finish(self, e: Emitter, target: str) -> None:
        assert isinstance(self.access, Indexed)
        access = self.access
        _, entries, first = access.names
        e.unit.grids[entries], e.unit.grids[first] = access.sum_tables
        pointers: Pointers = []

        def before(loop: Loop) -> None:
            pointers[:] = [loop.word(0), loop.word(1)]

        def body(loop: Loop) -> None:
            start = _first_row(loop.e, first, loop.index)
            stop = _first_row(loop.e, first, loop.e.new(f"add i64 {loop.index}, 1"))
            out = loop.e.element(pointers[1], loop.index, access.n)
            _sum_rows(loop, pointers[0], entries, (start, stop), access.n, out)

        fn = loop_function(e, f"sum_{access.name}", before, body)
        run_loop(e, fn, [("ptr", self.held), ("ptr", target)], "0", str(block_count(access.target)))


def _first_row(e: Emitter, table: str, block: str) -> str:
    return e.new(f"sext i32 {e.load('i32', e.new(f'getelementptr i32, ptr @{table}, i64 {block}'))} to i64")


def _sum_rows(loop: Loop, source: str, table: str, rows: tuple[str, str], n: int, out: str) -> None:
    """Sum the numbers at the places of some rows of a table, n numbers each, and store the sums."""
    e = loop.e
    kind, parts = e.n.vec, e.n.parts
    sums = [(c, part) for c in range(n) for part in range(parts)]
    head, body, done, before = e.label("sum"), e.label("term"), e.label("summed"), e.label("before")
    e.block(before)
    e.block(head)
    names = {key: f"%s{e.label('')}" for key in sums}
    k = f"%k{e.label('')}"
    at = len(e.lines)  # the phis are written when the values of the next round have names
    more = e.new(f"icmp slt i64 {k}, {rows[1]}")
    e.line(f"br i1 {more}, label %{body}, label %{done}")
    e.lines.append(f"{body}:")
    start = e.new(f"getelementptr i32, ptr @{table}, i64 {e.new(f'mul i64 {k}, {BLOCK}')}")
    places = [lane_words(e, start, part * e.n.width, "i32") for part in range(parts)]
    new = {}
    for c, part in sums:
        base = e.new(f"getelementptr {e.n.scalar}, ptr {source}, i64 {c * BLOCK}") if c else source
        vector = "poison"
        for lane, place in enumerate(places[part]):
            x = e.load(e.n.scalar, e.new(f"getelementptr {e.n.scalar}, ptr {base}, i64 {place}"))
            vector = e.new(f"insertelement {kind} {vector}, {e.n.scalar} {x}, i64 {lane}")
        new[c, part] = e.new(f"fadd {kind} {names[c, part]}, {vector}")
    next_ = e.new(f"add i64 {k}, 1")
    e.line(f"br label %{head}")
    phis = [f"  {k} = phi i64 [{rows[0]}, %{before}], [{next_}, %{body}]"]
    phis += [f"  {names[s]} = phi {kind} [zeroinitializer, %{before}], [{new[s]}, %{body}]" for s in sums]
    e.lines[at:at] = phis
    e.lines.append(f"{done}:")
    for c, part in sums:
        loop.store(names[c, part], loop.at(out, c, part))


def _at_number(e: Emitter, pointer: str, number: int) -> str:
    return e.new(f"getelementptr {e.n.scalar}, ptr {pointer}, i64 {number}")


class StencilWriter(Writer):
    """Adds lane by lane to rows of four numbers, in the order of the entities."""

    serial = True

    @property
    def rows(self) -> int:
        """Number of rows of four per cell."""
        return -(-self.access.n // ROW)

    def prepare(self, e: Emitter, target: str, begin: str, end: str) -> Words:
        assert isinstance(self.access, Stencil)
        size = block_count(self.access.target) * ROW
        self.grids = [e.hold(size) for _ in range(self.rows)]
        for grid in self.grids:
            e.helper("vzero", f"ptr {grid}", f"i64 {size}")
        return [("ptr", grid) for grid in self.grids]

    def enter(self, loop: Loop) -> None:
        assert isinstance(self.access, Stencil)
        self.pointers = [loop.word(self.first + k) for k in range(self.rows)]
        self.buffer = loop.e.hold(self.access.width)
        self.sorted = loop.e.hold(len(self.access.offsets) * ROW)

    def place(self, loop: Loop) -> str:
        return self.buffer

    def block(self, loop: Loop, place: str, lanes: Sequence[Pointers]) -> None:
        assert isinstance(self.access, Stencil)
        e, n, offsets = loop.e, self.access.n, self.access.offsets
        kind = f"<{ROW} x {e.n.scalar}>"
        for k, grid in enumerate(self.pointers):
            count = min(n - ROW * k, ROW)
            for part in range(e.n.parts):
                for j in range(len(offsets)):
                    vectors = [loop.load(loop.at(place, j * n + ROW * k + c, part)) for c in range(count)]
                    vectors += ["zeroinitializer"] * (ROW - count)
                    for g, rows in enumerate(interleaved(e, vectors)):
                        loop.store(rows, _at_number(e, self.sorted, (j * ROW + g) * e.n.width))
                base = lane_words(e, lanes[self.access.index][part], 0, "i64")
                for lane in range(e.n.width):
                    for j, offset in enumerate(offsets):
                        here = _at_number(e, self.sorted, (j * e.n.width + lane) * ROW)
                        x = e.new(f"load {kind}, ptr {here}, align {e.n.bytes}")
                        cell = e.new(f"add i64 {base[lane]}, {offset}")
                        there = e.new(f"getelementptr {kind}, ptr {grid}, i64 {cell}")
                        old = e.new(f"load {kind}, ptr {there}, align {e.n.bytes}")
                        e.line(f"store {kind} {e.new(f'fadd {kind} {old}, {x}')}, ptr {there}, align {e.n.bytes}")

    def finish(self, e: Emitter, target: str) -> None:
        assert isinstance(self.access, Stencil)
        for k, grid in enumerate(self.grids):
            from_rows(e, grid, self.access.n, k, target, block_count(self.access.target))


WRITERS: dict[type[Access], Callable[[Access, int], Writer]] = {
    Own: Writer,
    Shared: TotalWriter,
    Greatest: GreatestWriter,
    Indexed: IndexedWriter,
    Stencil: StencilWriter,
}


def from_rows(e: Emitter, source: str, n: int, group: int, target: str, blocks: int) -> None:
    """Write rows of four as numbers 4 group .. 4 group + 3 of all entities."""
    pointers: Pointers = []

    def before(loop: Loop) -> None:
        pointers[:] = [loop.word(0), loop.word(1)]

    def body(loop: Loop) -> None:
        here = loop.e.element(pointers[0], loop.index, ROW)
        there = loop.e.element(pointers[1], loop.index, n)
        for part in range(loop.e.n.parts):
            rows = []
            for k in range(ROW):
                offset = (part * ROW + k) * loop.e.n.align
                rows.append(loop.load(loop.e.new(f"getelementptr i8, ptr {here}, i64 {offset}")))
            for c, lanes in enumerate(separated(loop.e, rows)[: n - ROW * group]):
                loop.store(lanes, loop.at(there, ROW * group + c, part))

    fn = loop_function(e, f"from_rows_{n}_{group}", before, body)
    run_loop(e, fn, [("ptr", source), ("ptr", target)], "0", str(blocks))
