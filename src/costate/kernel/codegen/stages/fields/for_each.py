"""LLVM IR of a stage over the entities of a field: a loop over blocks around the function of an entity."""

from __future__ import annotations

from collections.abc import Sequence

from costate.kernel.codegen.emit import Emitter
from costate.kernel.codegen.slots import Slot
from costate.kernel.codegen.stages.fields.loop import Loop, keep_lanes, loop_function, run_loop
from costate.kernel.codegen.stages.fields.reads import READERS, Pointers
from costate.kernel.codegen.stages.fields.writes import WRITERS
from costate.kernel.ops.fields.access import Stencil
from costate.kernel.ops.fields.blocks import BLOCK, block_count
from costate.kernel.ops.fields.for_each import ForEach


def write_for_each(e: Emitter, op: ForEach, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
    """Write what comes before the loop over blocks, the loop, and what comes after it."""
    with e.scratch():
        _ForEachWriter(e, op, ins, outs).write()


class _ForEachWriter:
    def __init__(self, e: Emitter, op: ForEach, ins: Sequence[Slot], outs: Sequence[Slot]):
        self.e, self.op = e, op
        self.limits, self.values, self.indices = op.split([e.pointer(p) for p in ins])
        self.targets = [e.pointer(p) for p in outs]
        self.readers = [READERS[type(r)](r) for r in op.reads]
        self.writers = [WRITERS[type(w)](w, op.count) for w in op.writes]
        self.lanes: list[Pointers] = []

    def write(self) -> None:
        """Write the stage."""
        e, op = self.e, self.op
        first, last, begin, end = self._range()
        words = [("i64", first), ("i64", last)]
        for reader, source in zip(self.readers, self.values, strict=True):
            reader.first = len(words)
            words += reader.prepare(e, source)
        for writer, target in zip(self.writers, self.targets, strict=True):
            writer.first = len(words)
            words += writer.prepare(e, target, begin, end)
        self.first_index = len(words)
        words += [("ptr", p) for p in self.indices]
        loop = loop_function(e, op.key, self._enter, self._block)
        e.unit.ops[op.key] = e.unit.ops[op.fn.key] * op.count
        run_loop(e, loop, words, begin, end, any(w.serial for w in self.writers))
        for writer, target in zip(self.writers, self.targets, strict=True):
            writer.finish(e, target)

    def _range(self) -> tuple[str, str, str, str]:
        """Return the first entity and the one behind the last, and the same for blocks."""
        e, count = self.e, self.op.count
        if not self.limits:
            return "0", str(count), "0", str(block_count(count))
        second = e.element(self.limits[0], "1")
        first, last = (_clamped(e, e.load(e.n.scalar, p), count) for p in (self.limits[0], second))
        last = e.new(f"select i1 {e.new(f'icmp slt i64 {last}, {first}')}, i64 {first}, i64 {last}")
        begin = e.new(f"udiv i64 {first}, {BLOCK}")
        end = e.new(f"udiv i64 {e.new(f'add i64 {last}, {BLOCK - 1}')}, {BLOCK}")
        return first, last, begin, e.new(f"select i1 {e.new(f'icmp slt i64 {end}, {begin}')}, i64 {begin}, i64 {end}")

    def _enter(self, loop: Loop) -> None:
        self.first, self.last = loop.word(0, "i64"), loop.word(1, "i64")
        for each in (*self.readers, *self.writers):
            each.enter(loop)
        self.index_words = [loop.word(self.first_index + k) for k in range(self.op.n_indices)]
        self.lanes = [[loop.e.hold(2) for _ in range(loop.e.n.parts)] for _ in self.index_words]

    def _block(self, loop: Loop) -> None:
        e = loop.e
        lanes = [self._cells(loop, k) for k in range(self.op.n_indices)]
        args = [reader.block(loop, lanes) for reader in self.readers]
        places = [writer.place(loop) for writer in self.writers]
        chunks, slots = e.unit.straight(self.op.fn)
        for part in range(e.n.parts):
            results = [loop.part(place, part) for place in places]
            e.call_chunks(chunks, slots, [a[part] for a in args], results)
        self._keep(loop, places)
        for writer, place in zip(self.writers, places, strict=True):
            writer.block(loop, place, lanes)

    def _keep(self, loop: Loop, places: Sequence[str]) -> None:
        """Set what entities out of range have written to 0: they are in the first and last block."""
        e = loop.e
        start = e.new(f"mul i64 {loop.index}, {BLOCK}")
        stop = e.new(f"add i64 {start}, {BLOCK}")
        below = e.new(f"icmp slt i64 {start}, {self.first}")
        above = e.new(f"icmp sgt i64 {stop}, {self.last}")
        with e.when(e.new(f"or i1 {below}, {above}")):
            for writer, place in zip(self.writers, places, strict=True):
                keep_lanes(loop, place, writer.access.width, self.first, self.last)

    def _cells(self, loop: Loop, k: int) -> Pointers:
        """Turn an index, given as numbers, into integers that lie in the grid; return where they are, part by part."""
        e = loop.e
        wide = f"<{e.n.width} x i64>"
        stencils = [a for a in (*self.op.reads, *self.op.writes) if isinstance(a, Stencil) and a.index == k]
        low = max((-min(a.offsets) for a in stencils), default=0)
        high = min((a.target - 1 - max(a.offsets) for a in stencils), default=0)
        found = []
        for part in range(e.n.parts):
            x = loop.load(loop.part(e.element(self.index_words[k], loop.index), part))
            x = _between(e, x, float(low), float(high))
            target = self.lanes[k][part]
            e.line(f"store {wide} {e.new(f'fptosi {e.n.vec} {x} to {wide}')}, ptr {target}, align 8")
            found.append(target)
        return found


def _between(e: Emitter, x: str, low: float, high: float) -> str:
    """Return the numbers moved into an interval; NaN becomes its lower end."""
    n = e.n
    over = e.new(f"fcmp oge {n.vec} {x}, {n.splat(low)}")
    x = e.new(f"select {n.mask} {over}, {n.vec} {x}, {n.vec} {n.splat(low)}")
    under = e.new(f"fcmp ole {n.vec} {x}, {n.splat(high)}")
    return e.new(f"select {n.mask} {under}, {n.vec} {x}, {n.vec} {n.splat(high)}")


def _clamped(e: Emitter, x: str, count: int) -> str:
    """Return a number as an integer between 0 and count; NaN becomes 0."""
    kind = e.n.scalar
    over = e.new(f"fcmp oge {kind} {x}, 0.0")
    x = e.new(f"select i1 {over}, {kind} {x}, {kind} 0.0")
    under = e.new(f"fcmp ole {kind} {x}, {float(count)!r}")
    x = e.new(f"select i1 {under}, {kind} {x}, {kind} {float(count)!r}")
    return e.new(f"fptosi {kind} {x} to i64")
