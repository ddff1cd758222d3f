"""LLVM IR of columns: a loop over the columns of every group, or over as many at a time as there are lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.rows import store_part
from costate.kernel.codegen.slots import Memory, Rows, Slot
from costate.kernel.ir.program import Program
from costate.kernel.ops.columns import Columns


def write_columns(e: Emitter, op: Columns, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Write both ways: for a block of samples, and for a sample alone, whose lanes all hold it; inside of loops only the first."""
    (out,) = outs
    with e.scratch():
        writer = _ColumnsWriter(e, op, [e.pointer(p) for p in ins])
        if e.nested:
            assert isinstance(out, Memory)
            writer.one_by_one(e.pointer(out))
            return
        alone = e.new("icmp eq i64 %count, 1")
        if isinstance(out, Rows):
            summed = e.tensor_word(out.tensor, 5)
            alone = e.new(f"and i1 {alone}, {e.new(f'icmp eq i64 {summed}, 0')}")
        with e.when(alone):
            writer.side_by_side(out)
        with e.when(e.new(f"xor i1 {alone}, true")):
            if isinstance(out, Memory):
                writer.one_by_one(e.pointer(out))
            else:
                matrix = e.hold(op.rows * op.columns)
                writer.one_by_one(matrix)
                e.move(Memory(matrix), out, op.rows * op.columns)


class _ColumnsWriter:
    def __init__(self, e: Emitter, op: Columns, shared: list[str]):
        self.e, self.op, self.shared = e, op, shared
        self.column = e.hold(op.rows)
        starts = np.cumsum([0, *op.widths])
        self.groups = [(int(at), g, e.hold(g.in_sizes[0])) for at, g in zip(starts, op.groups, strict=False)]

    def one_by_one(self, matrix: str) -> None:
        """Write the loops over columns, for samples side by side."""
        e, op = self.e, self.op
        places = e.unit.constant(np.arange(op.rows) * op.columns, "i32")
        for start, group, seed in self.groups:
            e.helper("vzero", f"ptr {seed}", f"i64 {group.in_sizes[0]}")
            with e.loop(str(group.in_sizes[0])) as j:
                own = e.element(seed, j)
                e.spread("1.0", own)
                e.call(e.unit.function(group), [seed, *self.shared], [self.column])
                e.helper("vzero", f"ptr {own}", "i64 1")
                target = e.element(matrix, e.new(f"add i64 {j}, {start}"))
                e.helper("vassign", f"ptr {target}", f"ptr {self.column}", f"ptr {places}", f"i64 {op.rows}")

    def side_by_side(self, out: Slot) -> None:
        """Write the loops over blocks of columns, a lane each: the row of a block is a piece of a row of the matrix."""
        e, width = self.e, self.e.n.width
        for start, group, seed in self.groups:
            size = group.in_sizes[0]
            e.helper("vzero", f"ptr {seed}", f"i64 {size}")
            if size >= width:
                with e.loop(str(size // width)) as block:
                    first = e.new(f"mul i64 {block}, {width}")
                    self._block(group, seed, first, width, out, e.new(f"add i64 {first}, {start}"))
            if rest := size % width:
                self._block(group, seed, str(size - rest), rest, out, str(start + size - rest))

    def _block(self, group: Program, seed: str, first: str, count: int, out: Slot, column: str) -> None:
        e = self.e
        with self._seeded(e.element(seed, first), count):
            e.call(e.unit.function(group), [seed, *self.shared], [self.column])
        if isinstance(out, Memory):
            self._spread(count, e.element(e.pointer(out), column))
            return
        offset = e.load("i64", e.lanes(out.tensor))
        offset = e.new(f"add i64 {offset}, {e.new(f'mul i64 {column}, {e.n.bytes}')}")
        with e.loop(str(self.op.rows)) as r:
            values = e.load(e.n.vec, e.element(self.column, r))
            piece = e.new(f"getelementptr i8, ptr {e.row_address(out, r)}, i64 {offset}")
            store_part(e, e.n, values, piece, 0, count)

    def _spread(self, count: int, target: str) -> None:
        """Write every number of a block to all lanes of its element of the matrix."""
        e, n = self.e, self.e.n
        with e.loop(str(self.op.rows)) as r:
            values = e.load(n.vec, e.element(self.column, r))
            row = e.element(target, r, self.op.columns)
            for t in range(count):
                every = e.new(f"shufflevector {n.vec} {values}, {n.vec} poison, <{n.width} x i32> splat (i32 {t})")
                e.line(f"store {n.vec} {every}, ptr {e.element(row, str(t))}, align {n.align}")

    @contextmanager
    def _seeded(self, own: str, count: int) -> Iterator[None]:
        """Set lane t of element t to one while a block is computed."""
        e, n = self.e, self.e.n
        for t in range(count):
            unit = ", ".join(f"{n.scalar} {float(lane == t)}" for lane in range(n.width))
            e.line(f"store {n.vec} <{unit}>, ptr {e.element(own, str(t))}, align {n.align}")
        yield
        e.helper("vzero", f"ptr {own}", f"i64 {count}")
